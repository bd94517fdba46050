"""How applications write besides plain updates, each habit on the shipped plan's triggers and before the judge."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from deploy.mysql_server import Server
from flows import actions
from flows.conductor import PlainConductor
from flows.demo.traffic import final_check, seed
from flows.demo.traffic.generations import GENERATIONS, NEW_SIDE, OLD_SIDE, mapping
from flows.demo.traffic.journal import Journal
from flows.demo.traffic.session import Session
from flows.params import RunRequest, Through
from steps.target import target_of
from tests.conftest import App

RUN = RunRequest(plan="ai_analysis_job", by="tester", reason="because", through=Through.PRE_DEPLOY)
DONE_AT, LATER = datetime.fromisoformat("2026-03-04T05:06:07.089"), datetime.fromisoformat("2026-03-04T05:06:08")
BASE = {"jobType": "active-recall", "progress": 0, "updatedAt": LATER}
SUCCEEDED = {"state": "succeeded", "finished": DONE_AT, "error": None}
FAILED = {"state": "failed", "finished": DONE_AT, "error": "é ' \\ 模型 "}
PENDING = {"state": "pending", "finished": None, "error": None}
RUNNING = {"state": "running"}


@dataclass
class Writer:
    """An application of either generation: sends statements of its own habit, and what they mean goes on record."""

    app: App
    journal: Journal
    user: str
    writing_both: tuple[str, ...] = ()

    def insert(self, generation: str, jobs: dict[str, dict[str, Any]], verb: str = "INSERT", tail: str = "") -> None:
        """One statement for all *jobs*."""
        jobs = {job: {"userId": self.user, **BASE, **values} for job, values in jobs.items()}
        rows = [{"id": job, **self.row(generation, values)} for job, values in jobs.items()]
        places = ", ".join(f"({', '.join(['%s'] * len(rows[0]))})" for _ in rows)
        self.app.run(f"{verb} INTO AiAnalysisJob ({', '.join(rows[0])}) VALUES {places} {tail}", *(v for row in rows for v in row.values()))
        for job, values in jobs.items():
            self.note(generation, job, "create", values)

    def update(self, generation: str, job: str, values: dict[str, Any]) -> None:
        row = self.row(generation, values)
        sets = ", ".join(f"{column} = %s" for column in row)
        self.app.run(f"UPDATE AiAnalysisJob SET {sets} WHERE id = %s", *row.values(), job)
        self.note(generation, job, "update", values)

    def row(self, generation: str, values: dict[str, Any]) -> dict[str, Any]:
        """What *generation* sends: its own side, and the other one too if it writes both itself (M-AI-02-10)."""
        own = GENERATIONS[generation].physical(values)
        if generation not in self.writing_both:
            return own
        other = {side.get(name, name): value for side in (OLD_SIDE, NEW_SIDE) for name, value in values.items() if name != "state"}
        state = values.get("state")
        words = {"lifecycleStatus": state, "status": mapping().to_old.get(str(state))} if state else {}
        return {**other, **{column: word for column, word in words.items() if word}}  # `locked` has no old word: the old side stays

    def delete(self, generation: str, job: str) -> None:
        assert self.app.run("DELETE FROM AiAnalysisJob WHERE id = %s", job) == 1
        self.note(generation, job, "delete", {})

    def note(self, generation: str, job: str, kind: str, values: dict[str, Any]) -> None:
        self.journal.acknowledge(self.journal.intend(generation, job, kind, values, {}))


def replaced(writer: Writer, me: str, other: str) -> None:
    writer.insert(other, {"j": RUNNING})
    writer.insert(me, {"j": SUCCEEDED}, "REPLACE")


def upserted_anew(writer: Writer, me: str, _: str) -> None:
    writer.insert(me, {"j": FAILED}, tail="ON DUPLICATE KEY UPDATE progress = 1")


def upserted_again(writer: Writer, me: str, other: str) -> None:
    writer.insert(other, {"j": RUNNING})
    columns = writer.row(me, {"state": "succeeded", "finished": DONE_AT})
    writer.insert(me, {"j": SUCCEEDED}, tail=f"ON DUPLICATE KEY UPDATE {', '.join(f'{c} = VALUES({c})' for c in columns)}")


def many_at_once(writer: Writer, me: str, _: str) -> None:
    writer.insert(me, {"j": SUCCEEDED, "k": FAILED, "l": PENDING, "m": {**RUNNING, "finished": None, "error": None}})


def touched_twice(writer: Writer, me: str, other: str) -> None:
    writer.insert(other, {"j": PENDING})
    writer.app.run("BEGIN")
    writer.update(me, "j", RUNNING)
    writer.update(me, "j", FAILED)
    writer.app.run("COMMIT")


def rolled_back(writer: Writer, me: str, other: str) -> None:
    writer.insert(other, {"j": FAILED})
    writer.app.run("BEGIN")
    writer.app.run(f"UPDATE AiAnalysisJob SET {GENERATIONS[me].column('state')} = 'pending', {GENERATIONS[me].column('error')} = NULL")
    writer.app.run("ROLLBACK")


def requeued(writer: Writer, me: str, other: str) -> None:
    writer.insert(other, {"j": FAILED})
    writer.update(me, "j", PENDING)


def deleted_and_made_again(writer: Writer, me: str, other: str) -> None:
    writer.insert(other, {"j": FAILED, "k": SUCCEEDED})
    writer.delete(me, "j")
    writer.delete(me, "k")
    writer.insert(me, {"k": PENDING})


def in_turns(writer: Writer, me: str, other: str) -> None:
    writer.insert(me, {"j": PENDING})
    for generation, values in ((other, RUNNING), (me, FAILED), (other, PENDING), (me, RUNNING), (other, SUCCEEDED)):
        writer.update(generation, "j", values)


def cancelled(writer: Writer, _: str, other: str) -> None:
    writer.insert(other, {"j": PENDING})
    writer.update("v1", "j", {"state": "cancelled", "finished": DONE_AT})


def locked_then_run(writer: Writer, _: str, other: str) -> None:
    writer.insert(other, {"j": PENDING, "k": PENDING, "l": PENDING})
    for job, end in (("j", RUNNING), ("k", PENDING), ("l", {})):  # confirmed; taken back by the reaper; still locked
        writer.update("v1", job, {"state": "locked"})
        if end:
            writer.update("v1", job, end)


def claimed_while_locked(writer: Writer, *_: str) -> None:
    """F18: V0 sees pending and claims; that is the last write, so it is what both sides must show."""
    writer.insert("v0", {"j": PENDING})
    writer.update("v1", "j", {"state": "locked"})
    writer.update("v0", "j", RUNNING)


HABITS = (replaced, upserted_anew, upserted_again, many_at_once, touched_twice, rolled_back, requeued, deleted_and_made_again, in_turns,
          cancelled, locked_then_run, claimed_while_locked)


@pytest.fixture(scope="module")
def url(server: Server) -> Iterator[str]:
    """The ADR's database after pre_deploy."""
    url = f"{server.url}habits_{uuid.uuid4().hex[:12]}"
    seed(url, 0)
    with actions.desk(RUN, target_of(url)) as rollout:
        actions.run(rollout, RUN, PlainConductor())
    yield url
    with closing(Session(url, "test")) as session:
        session.run(f"DROP DATABASE `{target_of(url).schema}`")


@pytest.fixture
def writer(url: str, tmp_path: Path) -> Iterator[Writer]:
    """A client with a journal of its own and a table without jobs."""
    app, journal = App(target_of(url)), Journal(tmp_path / "by_hand.journal", lambda: "habit")
    app.run("DELETE FROM AiAnalysisJob")
    yield Writer(app, journal, str(app.value("SELECT MIN(id) FROM `User`")))
    journal.close()
    app.close()


@pytest.fixture
def without_triggers(writer: Writer) -> Iterator[Writer]:
    """The same on a table whose triggers are away for the while."""
    made = [str(writer.app.rows(f"SHOW CREATE TRIGGER {name}")[0][2]) for name in writer.app.triggers()]
    assert len(made) == 2
    for name in writer.app.triggers():
        writer.app.run(f"DROP TRIGGER {name}")
    yield writer
    for statement in made:
        writer.app.run(statement)


@pytest.mark.parametrize(("me", "other"), [("v0", "v1"), ("v1", "v0")])
@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
def test_both_sides_show_the_last_write_whatever_the_habit(
        writer: Writer, url: str, tmp_path: Path, habit: Callable[[Writer, str, str], None], me: str, other: str) -> None:
    habit(writer, me, other)

    assert final_check(url, tmp_path) == []


@pytest.mark.parametrize(("me", "other"), [("v0", "v1"), ("v1", "v0")])
@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
def test_v1s_own_shadow_write_and_the_triggers_leave_each_other_alone(
        writer: Writer, url: str, tmp_path: Path, habit: Callable[[Writer, str, str], None], me: str, other: str) -> None:
    writer.writing_both = ("v1",)

    habit(writer, me, other)

    assert final_check(url, tmp_path) == []


@pytest.mark.parametrize(("me", "other"), [("v0", "v1"), ("v1", "v0")])
@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.__name__)
def test_without_triggers_both_sides_are_right_where_old_code_writes_both_too(
        without_triggers: Writer, url: str, tmp_path: Path, habit: Callable[[Writer, str, str], None], me: str, other: str) -> None:
    """The ADR's own picture: no V0 is left, and what is left of its code in V1's release writes both columns like the new code."""
    without_triggers.writing_both = ("v0", "v1")

    habit(without_triggers, me, other)

    assert final_check(url, tmp_path) == []


def test_without_triggers_v1s_own_shadow_write_does_not_bring_v0s_writes_to_v1(
        without_triggers: Writer, url: str, tmp_path: Path) -> None:
    without_triggers.writing_both = ("v1",)

    in_turns(without_triggers, "v1", "v0")

    assert {row.column for row in final_check(url, tmp_path)} == {"lifecycleStatus", "internalErrorMessage"}


def test_replace_by_v0_loses_what_only_the_new_side_knows_and_nothing_else(writer: Writer, url: str, tmp_path: Path) -> None:
    writer.insert("v1", {"j": {**RUNNING, "queueName": "ai-background", "inputRef": "answer:1"}})
    writer.note("v0", "j", "delete", {})  # what REPLACE is: the row goes, and a new one comes
    writer.insert("v0", {"j": SUCCEEDED}, "REPLACE")

    assert final_check(url, tmp_path) == []
    assert writer.app.rows("SELECT queueName, inputRef, lifecycleStatus FROM AiAnalysisJob") == [("ai-interactive", None, "succeeded")]


def test_the_judge_sees_what_would_go_wrong_without_the_triggers(without_triggers: Writer, url: str, tmp_path: Path) -> None:
    touched_twice(without_triggers, "v0", "v1")

    assert {row.column for row in final_check(url, tmp_path)} == {"lifecycleStatus", "finishedAt", "internalErrorMessage"}
