"""The judge on histories written by hand: no server, every rule by itself."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from flows.demo.traffic.generations import GENERATIONS, V0_COLUMNS, V1_COLUMNS, V2_COLUMNS, mapping
from flows.demo.traffic.http_model import HttpModel
from flows.demo.traffic.journal import History, Journal, Read, Write, read_history
from flows.demo.traffic.judge import beginning, fold, run_twice, wrong_reads
from flows.demo.traffic.seed import split_statements
from tests.doubles.serving import Request, serving


def write(
    held: int,
    *,
    kind: str = "update",
    acked: bool = True,
    queued: bool = False,
    executed: bool = False,
    by: str = "v0",
    **values: object,
) -> Write:
    return Write("job", kind, held, by, "p", values, queued, executed, held + 1 if acked else None)


def history(*writes: Write, reads: Sequence[Read] = (), pending: Sequence[str] = ()) -> History:
    return History(1000, {"job": list(writes)}, list(reads), frozenset(pending))


def test_models_count_as_the_adr_does() -> None:
    assert [len(set(columns)) for columns in (V0_COLUMNS, V1_COLUMNS, V2_COLUMNS)] == [13, 44, 41]


def test_v1_writes_neither_the_old_names_nor_status() -> None:
    written = GENERATIONS["v1"].physical({"state": "locked", "finished": None, "error": None})

    assert set(written) == {"lifecycleStatus", "finishedAt", "internalErrorMessage"}
    assert not {"completedAt", "errorMessage"} & set(V1_COLUMNS)


@pytest.mark.parametrize(
    ("state", "old"),
    [
        ("pending", {"pending"}),
        ("locked", {"pending", "processing"}),
        ("running", {"processing"}),
        ("succeeded", {"completed"}),
        ("cancelled", {"failed"}),
    ],
)
def test_v0_sees_each_state_as_the_plan_maps_it(state: str, old: set[str]) -> None:
    assert GENERATIONS["v0"].may_see(state) == old
    assert all(mapping().agree(word, state) for word in old)
    assert not mapping().agree("completed", "locked")


def test_an_unknown_outcome_is_either_or_until_the_next_sure_write() -> None:
    sure, unsure = write(1, state="running"), write(2, acked=False, state="failed")

    assert fold([sure, unsure], {}) == [{"state": "running"}, {"state": "failed"}]
    assert fold([sure, unsure, write(3, state="succeeded")], {}) == [{"state": "succeeded"}]


def test_many_unknown_outcomes_of_one_job_are_few_states() -> None:
    unsure = [write(number, acked=False, state="running", progress=number) for number in range(1, 41)]

    assert len(fold(unsure, {})) == 41  # the start, and each write as the last one


def test_a_creation_of_unknown_outcome_may_have_left_no_row() -> None:
    chain = [write(1, kind="create", acked=False, state="pending")]

    assert fold(chain, beginning(chain)) == [None, {"state": "pending"}]
    assert fold(chain[1:], beginning(chain[1:])) == [{}]


@pytest.mark.parametrize(
    ("later", "state"),
    [
        ([write(2, state="failed")], "cancelled"),  # V0 says `failed` where it read `failed`: nothing has moved
        ([write(2, state="pending"), write(3, state="failed")], "failed"),
        ([write(2, by="v1", state="failed")], "failed"),
        ([write(2, kind="replace", state="failed")], "failed"),  # a new row, which knows nothing of the one before
        ([write(2, kind="delete"), write(3, kind="create", state="failed")], "failed"),
    ],
)
def test_a_word_of_v0_that_says_nothing_new_leaves_v1s_finer_one(later: list[Write], state: str) -> None:
    assert fold([write(1, kind="create", by="v1", state="cancelled"), *later], None) == [{"state": state}]


def test_v0_moves_a_locked_job_to_running() -> None:
    locked = [write(1, kind="create", state="pending"), write(2, by="v1", state="locked")]

    assert fold([*locked, write(3, state="running")], None) == [{"state": "running"}]


def test_replace_leaves_nothing_of_what_it_does_not_name() -> None:
    chain = [write(1, kind="replace", by="v1", state="running", inputRef="answer:1"), write(2, kind="replace", state="running")]

    assert fold(chain, beginning(chain)) == [{"state": "running"}]
    assert beginning(chain) is None


def test_a_write_is_ordered_by_the_clock_its_application_took(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "v0-1.journal", lambda: "p", "prisma")
    first = journal.intend("v0", "a", "update", {"state": "running"}, {})
    second = journal.intend("v0", "a", "update", {"state": "pending"}, {})
    journal.acknowledge(second, held=1)
    journal.acknowledge(first, held=2)
    journal.close()

    chain = read_history(tmp_path).chains["a"]

    assert [(w.values["state"], w.held, w.stack) for w in chain] == [("pending", 1, "prisma"), ("running", 2, "prisma")]


@pytest.mark.parametrize(("answer", "explained"), [
    ({"x-generation": "v0", "status": "completed"}, True), ({"x-generation": "v0", "status": "failed"}, False),
    ({"x-generation": "v1", "status": "failed", "lifecycleStatus": "succeeded"}, True),
    ({"x-generation": "v1", "status": "completed", "lifecycleStatus": "failed"}, False)])
def test_behind_one_address_each_answer_is_judged_in_the_words_of_the_generation_that_gave_it(
    tmp_path: Path, answer: dict[str, str], *, explained: bool
) -> None:
    by, row = answer["x-generation"], {name: word for name, word in answer.items() if name != "x-generation"}

    def application(request: Request) -> tuple[int, object]:
        request.body()
        request.extra = {"x-generation": by}
        return (200, {"done": True, "row": {"id": "a", **row}})

    wrong: list[tuple[str, str]] = []
    journal = Journal(tmp_path / "api-1.journal", lambda: "p", "haproxy")
    with serving(application) as address:
        model = HttpModel(GENERATIONS["api"], address, journal, lambda *what: wrong.append(what))
        model.create("a", {"state": "succeeded"})
        model.find("a")
        model.close()
    journal.close()
    found = read_history(tmp_path)

    assert [(write.generation, write.stack) for write in found.chains["a"]] == [(by, "haproxy")]
    assert [read.generation for read in found.reads] == [by]
    assert (wrong == [], wrong_reads(found) == []) == (explained, explained)


def test_an_execution_needs_a_queueing_of_its_own() -> None:
    queued, first, second = write(1, queued=True), write(2, executed=True), write(4, executed=True)

    assert run_twice(history(queued, first)) == []
    assert run_twice(history(queued, first, write(3, queued=True), second)) == []
    assert run_twice(history(queued, first, second)) == [second]


def test_history_must_not_be_executed_unless_it_waited_at_the_start() -> None:
    first = write(2, executed=True)

    assert run_twice(history(first)) == [first]
    assert run_twice(history(first, pending=["job"])) == []
    assert run_twice(history(write(1, queued=True), write(2, executed=True), first, pending=["job"])) == [first]


@pytest.mark.parametrize(
    ("begun", "ended", "saw", "wrong"),
    [
        (5, 6, "processing", False),
        (5, 6, "pending", True),
        (0, 6, "pending", False),  # the write was not acknowledged when the read began
        (5, 22, "completed", False),  # the next write held its lock before the read ended
        (5, 18, "completed", True),  # a state from the future
        (5, 6, None, True),
        (32, 33, None, False),
    ],
)
def test_a_read_must_be_explained_by_an_order_of_the_writes_around_it(
    begun: int, ended: int, saw: str | None, wrong: bool
) -> None:
    chain = [
        write(-5, kind="create", state="pending"),
        write(2, state="running"),
        write(20, state="succeeded"),
        write(30, kind="delete"),
    ]
    read = Read("job", begun, ended, saw, "v0", "p")

    assert wrong_reads(history(*chain, reads=[read])) == ([read] if wrong else [])


def test_a_read_of_a_job_found_in_an_unknown_state_is_not_judged() -> None:
    assert wrong_reads(history(write(9, state="running"), reads=[Read("job", 1, 2, "pending", "v0", "p")])) == []


def test_a_journal_survives_its_process_dying_in_the_middle(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "v0-1.journal", lambda: "deploy")
    journal.acknowledge(journal.intend("v0", "a", "create", {"state": "pending"}, {"queued": True}))
    journal.withdraw(journal.intend("v0", "a", "update", {"state": "failed"}, {}))
    journal.intend("v0", "a", "update", {"state": "running"}, {"executed": True})
    journal.close()
    with (tmp_path / "v0-1.journal").open("a") as torn:
        torn.write('{"ack": 2, "a')

    chain = read_history(tmp_path).chains["a"]

    found = [(w.kind, bool(w.acked), w.label) for w in chain]
    assert found == [("create", True, "deploy"), ("update", False, "deploy")]


def test_statements_are_split_by_tokens() -> None:
    sql = "-- one; two\nSELECT ';' AS `a;b`;\n\nSELECT 2 -- end;\n;;SELECT 3"

    assert split_statements(sql) == ["SELECT ';' AS `a;b`", "SELECT 2", "SELECT 3"]
