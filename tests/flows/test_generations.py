"""Both generations' statements work after every step of every phase and every way back, and no acknowledged write is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from flows import actions
from flows.demo.traffic.generations import GENERATIONS, mapping
from flows.params import RollbackRequest, RunRequest
from flows.params import Target as Where
from steps.rollout import Rollout
from tests.conftest import App
from tests.flows.between import AfterEachStep

Rollouts = Callable[..., Rollout]
RUN = RunRequest(plan="ai_analysis_job", by="tester", reason="because")
BACK = RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", to=Where.V0)
V0, V1 = GENERATIONS["v0"], GENERATIONS["v1"]
OLD_SIDE = "SELECT status, completedAt, errorMessage FROM AiAnalysisJob WHERE id = %s"
NEW_SIDE = "SELECT lifecycleStatus, finishedAt, internalErrorMessage FROM AiAnalysisJob WHERE id = %s"
FINISHED = "2026-03-04 05:06:07.089"


@dataclass
class Clients:
    """A V0 and a V1 application: each names every column of its model, as Prisma does, and remembers what was acknowledged."""

    app: App
    v1_is_out: bool = False
    acknowledged: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    v1_defaults: dict[str, Any] = field(default_factory=dict)

    def act(self, phase: str, step: str) -> None:
        """Every generation that is out inserts, reads, updates and reads again; then each job is read from the old side."""
        self.calls.append((phase, step))
        self._work(V0, "completed", "pending", "failed")
        if self.v1_is_out:
            self._work(V1, "succeeded", "pending", "cancelled")
            self._cross()

    def _work(self, generation: Any, done: str, begun: str, ended: str) -> None:
        job, other = (f"{generation.name}-{len(self.calls):03}-{n}" for n in "ab")
        status, finished, error = generation.side["state"], generation.side["finished"], generation.side["error"]
        for name in (job, other):
            row: dict[str, Any] = dict.fromkeys(generation.columns)
            row |= {"id": name, "userId": "u1", "jobType": generation.job_types[0], status: begun, "progress": 0,
                    "createdAt": "2026-01-01", "updatedAt": "2026-01-02"}
            if not generation.is_old:
                row |= self.v1_defaults
                del row["status"]  # F10: V1 leaves the old column to the sync
            self.app.run(f"INSERT INTO AiAnalysisJob ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", *row.values())
        self._read(generation, job, status, begun)
        changed = self.app.run(f"UPDATE AiAnalysisJob SET {status} = %s, {finished} = %s, {error} = %s, updatedAt = '2026-01-03' "
                               f"WHERE id = %s AND {status} = %s", done, FINISHED, "é 'x'", job, begun)
        assert changed == 1
        assert self.app.run(f"UPDATE AiAnalysisJob SET {status} = %s, {error} = %s WHERE id = %s", ended, None, other) == 1
        self._read(generation, job, status, done)
        self.acknowledged[job] = (done if generation.is_old else mapping().to_old[done], FINISHED, "é 'x'")
        self.acknowledged[other] = (ended if generation.is_old else mapping().to_old[ended], "None", "None")

    def _cross(self) -> None:
        """The old application moves a job of the new one, and the other way round."""
        mine, theirs = f"v1-{len(self.calls):03}-b", f"v0-{len(self.calls):03}-b"
        assert self.app.run("UPDATE AiAnalysisJob SET status = 'processing' WHERE id = %s", mine) == 1
        assert self.app.value("SELECT lifecycleStatus FROM AiAnalysisJob WHERE id = %s", mine) == "running"
        assert self.app.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'running' WHERE id = %s", theirs) == 1
        assert self.app.value("SELECT status FROM AiAnalysisJob WHERE id = %s", theirs) == "processing"
        for job in (mine, theirs):
            self.acknowledged[job] = ("processing", "None", "None")

    def _read(self, generation: Any, job: str, status: str, expected: str) -> None:
        columns = ", ".join(f"`{column}`" for column in generation.columns)
        (row,) = self.app.rows(f"SELECT {columns} FROM AiAnalysisJob WHERE id = %s", job)
        assert row[generation.columns.index(status)] == expected

    def look(self, *, new_side_too: bool) -> None:
        """Every acknowledged write stands on the old side, and on the new side where there is sync."""
        assert self.acknowledged
        for job, (status, finished, error) in self.acknowledged.items():
            (old,) = self.app.rows(OLD_SIDE, job)
            assert (old[0], short(old[1]), str(old[2])) == (status, finished, error), job
            if new_side_too:
                (new,) = self.app.rows(NEW_SIDE, job)
                assert mapping().agree(old[0], new[0]), (job, old[0], new[0])
                assert new[1:] == old[1:]


def short(moment: Any) -> str:
    return "None" if moment is None else moment.isoformat(" ", "milliseconds")


@pytest.fixture
def clients(seeded: App) -> Clients:
    return Clients(seeded)


def test_no_statement_of_either_generation_fails_and_no_write_is_lost_there_and_back_and_there_again(rollouts: Rollouts,
                                                                                                    clients: Clients) -> None:
    def forward(phase: str, step: str) -> None:
        clients.v1_is_out = clients.v1_is_out or (phase == "1. pre_deploy" and step == "settle")
        fill_defaults(clients)
        clients.act(phase, step)

    def backward(phase: str, step: str) -> None:
        clients.v1_is_out = clients.v1_is_out and not (phase == "rollback of deploy" and step == "take the new generation back")
        clients.act(phase, step)

    clients.act("before", "everything")
    for _ in range(2):
        assert actions.run(rollouts(), RUN, AfterEachStep(forward)).outcome == "done"
        clients.look(new_side_too=True)
        assert actions.rollback(rollouts(), BACK, AfterEachStep(backward)).outcome == "done"
        clients.look(new_side_too=False)
        clients.act("back on v0", "without sync")
    assert actions.run(rollouts(), RUN, AfterEachStep(forward)).outcome == "done"
    clients.look(new_side_too=True)

    phases = {phase for phase, _ in clients.calls}
    assert phases >= {"1. pre_deploy", "2. deploy", "3. backfill", "4. verify", "5. shadow_write", "rollback of deploy",
                      "rollback of pre_deploy"}
    assert len(clients.acknowledged) > 100


def test_v0_lives_through_the_way_back_that_drops_everything(rollouts: Rollouts, clients: Clients) -> None:
    baseline = clients.app.create_table()
    actions.run(rollouts(), RUN, AfterEachStep(clients.act))

    everything = BACK.model_copy(update={"drop_added": True})
    assert actions.rollback(rollouts(), everything, AfterEachStep(clients.act)).outcome == "done"

    clients.look(new_side_too=False)
    assert clients.app.create_table() == baseline
    assert ("rollback of pre_deploy", "descend to the baseline") in clients.calls


def fill_defaults(clients: Clients) -> None:
    """V1's model writes its constant defaults itself, as Prisma does; they are read from the table once the columns are there."""
    if clients.v1_defaults or not clients.v1_is_out:
        return
    for name, default in clients.app.rows("SELECT COLUMN_NAME, COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
                                          "DATABASE() AND TABLE_NAME = 'AiAnalysisJob' AND IS_NULLABLE = 'NO'"):
        if default is not None and name in V1.columns and name not in ("lifecycleStatus", "createdAt", "status", "progress"):
            clients.v1_defaults[str(name)] = default
