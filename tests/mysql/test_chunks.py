"""A chunk that the server refuses is split down to the row; what is refused is told by key, and nothing is passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import chunks, passes, pre_deploy, quarantine
from steps.errors import ConnectionLost, LockTimeout, StatementFailed, Stopped
from steps.phase import Phase
from tests.conftest import STATUSES, App
from tests.mysql.conftest import Opened, expand
from tests.plans import small

REFUSED = ("k03", "k11")
BLIND = "rehearsal.sample_rows=0"  # a sample would show them beforehand


@pytest.fixture
def stubborn(job: App) -> App:
    """40 rows of which two are refused by somebody's own trigger, with a text that quotes contents."""
    with job.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status, note) VALUES (%s, %s, 'secret words')",
                           [(f"k{n:02}", STATUSES[2 + n % 2]) for n in range(40)])
    job.run("CREATE TRIGGER theirs BEFORE UPDATE ON job FOR EACH ROW BEGIN IF NEW.id IN ('k03', 'k11') THEN "
            "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'row is sealed'; END IF; END")
    return job


@pytest.mark.parametrize(("error", "expected"), [
    (StatementFailed("UPDATE", "row is sealed", "", 1644), False), (StatementFailed("UPDATE", "too long", "", 1406), False),
    (StatementFailed("UPDATE", "table is full", "", 1114), True), (StatementFailed("UPDATE", "no space", "", 28), True),
    (StatementFailed("UPDATE", "read-only", "", 1290), True), (LockTimeout("UPDATE", "deadlock", "", 1213), True),
    (ConnectionLost("UPDATE", "gone", "", 2013), True)], ids=lambda value: str(getattr(value, "errno", value)))
def test_what_the_server_suffers_is_no_rows_fault(error: StatementFailed, expected: bool) -> None:
    assert chunks._of_no_row(error) is expected


@pytest.mark.parametrize("mode", ["gentle", "full_speed"])
def test_refused_rows_are_named_and_all_others_filled(stubborn: App, opened_on: Opened, tmp_path: Path, mode: str) -> None:
    rollout = opened_on(small(tmp_path, overrides=(f"backfill.mode={mode}", "backfill.connections=2", BLIND)))

    with pytest.raises(Stopped, match=r"the server refused 2 rows \(keys: k03, k11\).*row is sealed") as raised:
        expand(rollout)

    assert raised.value.exit_code == 4
    assert [row["key"] for row in quarantine.rows(rollout.ledger, pre_deploy.FIRST_PASS)] == list(REFUSED)
    assert "secret words" not in str(raised.value) + str(rollout.ledger.events()) + str(stubborn.rows("SELECT * FROM _rollout_quarantine"))
    assert stubborn.rows("SELECT id FROM job WHERE state = 'pending' ORDER BY id") == [(key,) for key in REFUSED]
    assert rollout.ledger.passes()[pre_deploy.FIRST_PASS]["finished_at"] is None
    assert rollout.ledger.phase_state(Phase.PRE_DEPLOY) == "running"

    stubborn.run("DROP TRIGGER theirs")
    expand(opened_on(small(tmp_path)))
    assert stubborn.value("SELECT COUNT(*) FROM job WHERE state = 'pending'") == 0
    assert quarantine.rows(rollout.ledger, pre_deploy.FIRST_PASS) == []
    assert rollout.ledger.phase_state(Phase.PRE_DEPLOY) == "done"


def test_where_a_filled_column_is_indexed_no_transaction_of_a_refused_chunk_holds_two_rows(
        stubborn: App, opened_on: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = opened_on(small(tmp_path, overrides=(BLIND,)))
    updated, real = list[int](), chunks.Fixer._update
    monkeypatch.setattr(chunks.Fixer, "_update", lambda fixer, condition, values: (
        updated.append(len(values)), real(fixer, condition, values))[1])
    monkeypatch.setattr(passes, "filled_column_is_indexed", lambda _walk: True)

    with pytest.raises(Stopped, match=r"the server refused 2 rows \(keys: k03, k11\)"):
        expand(rollout)

    assert set(updated) == {1}  # F15
    assert stubborn.rows("SELECT id FROM job WHERE state = 'pending' ORDER BY id") == [(key,) for key in REFUSED]


def test_too_many_refused_rows_stop_the_pass_at_once(stubborn: App, opened_on: Opened, tmp_path: Path) -> None:
    rollout = opened_on(small(tmp_path, overrides=("backfill.most_refused=1", BLIND)))

    with pytest.raises(Stopped, match="refused more than 1 rows, one by one"):
        expand(rollout)

    assert len(quarantine.rows(rollout.ledger, pre_deploy.FIRST_PASS)) == 2
