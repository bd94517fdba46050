"""What events and notifications say, in words that are made of the ledger's and of errors."""

from __future__ import annotations

from typing import Any

import pytest

from flows.transitions import of_error, of_ledger, sentence
from steps.cancellation import Cancelled
from steps.errors import (
    Busy,
    ParityLost,
    ParityUnseen,
    Refused,
    RollbackFailed,
    RolledBack,
    Stopped,
    WaitingForPerson,
)
from steps.ledger import Event

FACTS = {"flow": "rollout", "table": "app.job", "plan": "small", "phase": "4. verify", "what": "", "remedy": "", "by": "ann",
         "reason": "CHG-1"}


class Closed(Stopped):
    """A gate that is shut, as whoever raises it has it."""

    gate = "cleanup"


@pytest.mark.parametrize(("error", "name"), [
    (Refused("table t", "is not fit", "mend it"), "refused"), (Busy("table t", "is held", "wait"), "busy"),
    (Stopped("table t", "no gap", "again"), "stopped"), (WaitingForPerson("deploy", "somebody has to say", "say it"), "waiting"),
    (Closed("cleanup", "a person has to approve", "approve it"), "waiting"), (RolledBack("verify", "rows differ", "mend"), "rolled-back"),
    (RollbackFailed("rollback", "it broke", "see"), "failed"), (ParityLost("table t", "1 rows disagree", "by key"), "parity.lost"),
    (ParityUnseen("table t", "could not look", "grant"), "parity.unseen"), (Cancelled("SIGTERM"), "cancelled"),
    (ValueError("secret contents of a row"), "failed"),
])
def test_each_way_to_end_has_a_name(error: BaseException, name: str) -> None:
    ending = of_error(error)

    assert ending.name == name
    assert ending.what
    assert ending.remedy
    assert "secret contents" not in str(ending)


def gate(outcome: str, **detail: Any) -> Event:
    return Event("cleanup", "gate", outcome, detail=detail)


def test_a_gate_that_waits_for_a_person_says_for_what_and_how_to_answer() -> None:
    asked = gate("waiting", by="ann", why="it is due", needs="approval", reasons=["a person has to confirm"], unmet=["parity is lost"],
                 binding={"hash": "x" * 64})

    told = of_ledger(asked, "small")

    assert told is not None
    assert (told.name, told.what) == ("waiting", "a person has to confirm; not met: parity is lost")
    assert told.remedy == "`rollout approve small cleanup --by NAME --reason WHY`, or reject, or answer in the Prefect UI"


def test_a_gate_that_time_opens_asks_nobody() -> None:
    told = of_ledger(gate("waiting", needs="time", reasons=["outside its window"], opens_at="2026-12-01T02:00:00+00:00"), "small")

    assert told is not None
    assert told.remedy.startswith("it opens at 2026-12-01T02:00:00+00:00: a suspended run goes on by itself then")


@pytest.mark.parametrize(("outcome", "what"), [("approved", "by eve: seen it"), ("rejected", "by eve: seen it"), ("expired", "seen it")])
def test_an_answer_says_who_and_why(outcome: str, what: str) -> None:
    told = of_ledger(gate(outcome, by="eve", why="seen it"), "small")

    assert told is not None
    assert (told.name, told.what) == (outcome, what)


@pytest.mark.parametrize("event", [gate("waiting", by="bob", why="me too"), gate("opened"), Event("deploy", "put out", "done"),
                                   Event("shadow_write", "parity watch", "found"), Event("cleanup", "conditions", "not met")])
def test_what_nobody_needs_to_hear_of_is_no_transition(event: Event) -> None:
    assert of_ledger(event, "small") is None


def test_a_sentence_has_table_phase_what_remedy_who_and_why() -> None:
    assert sentence("rolled-back", FACTS | {"what": "verify: rows differ", "remedy": "mend them"}) == (
        "rollout of table app.job (plan small), 4. verify: failed and was rolled back: verify: rows differ. What to do: mend them. "
        "By ann: CHG-1")
    assert sentence("phase.ended", FACTS) == "rollout of table app.job (plan small), 4. verify: is done. By ann: CHG-1"
