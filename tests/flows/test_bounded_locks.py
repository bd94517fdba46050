"""
Every request for an exclusive metadata lock in a whole life waits for a gap: beside a holder of the table, of a foreign-key parent or of
a child, nothing of ours ever stands in a queue, and the run names the holder (F24; cases C01, C02). And such requests are few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps import plan_loader
from steps.errors import FindingsRefused, LockWaited, NoGap
from steps.hold import Gap
from steps.mysql import Session
from steps.plan import Plan
from steps.rollout import Rollout
from steps.target import Target as Database
from steps.watchdog import Watchdog
from tests.conftest import BY_COMMAND, App
from tests.flows.between import After

ROOMY = (*BY_COMMAND, "cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0",
         "cleanup.cooling_s=0", "max_stall_ms=20000")  # so that no hold is given back early on a busy machine
ACCEPTED = frozenset({"cleanup", "cleanup-unseen", "rename-in-place", "discard-added"})
NOT_OURS = r"`(?!_rollout_)(?!\w+`\.`_rollout_)"  # not the tool's own tables
EXCLUSIVE = re.compile(rf"((ALTER|RENAME|TRUNCATE|DROP) TABLE|LOCK TABLES) (IF EXISTS )?{NOT_OURS}|(CREATE .*|DROP )TRIGGER ", re.DOTALL)
PLACES = ("AiAnalysisJob", "User", "Child")
Rollouts = Callable[..., Rollout]


@dataclass
class Requests:
    """What was asked for through gaps, what else needed an exclusive lock, and what stood in a queue behind a holder."""

    fired: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    holders: set[int] = field(default_factory=set)

    def since(self, number: int) -> int:
        return len(self.fired) - number


@pytest.fixture
def places(seeded: App) -> App:
    """The seeded database with a child of the table and the tables of the leaves."""
    seeded.run("CREATE TABLE Child (id INT PRIMARY KEY, jobId VARCHAR(191) COLLATE utf8mb4_unicode_ci, "
               "FOREIGN KEY (jobId) REFERENCES AiAnalysisJob (id))")
    for leaf in ("AiJobSnapshot", "AiJobArtifact", "AiUsageLog"):
        seeded.run(f"CREATE TABLE {leaf} (id INT PRIMARY KEY, jobId VARCHAR(191) COLLATE utf8mb4_unicode_ci NULL)")
    return seeded


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, database: Database) -> Requests:
    """Notes every request; each statement of ours outside a gap is held against the live schema."""
    seen = Requests()
    packet, verbatim, run = Session.packet, Session.verbatim, Session.run

    def fired(session: Session, first: str, second: str, guard: Any) -> None:
        packet(session, first, second, guard)
        seen.fired.append(second)
        if second.startswith("LOCK TABLES"):
            seen.holders.add(session.connection_id)

    def noted(session: Session, sql: str) -> None:
        if (EXCLUSIVE.match(sql) and session.connection_id not in seen.holders
                and session.value("SELECT DATABASE()") == database.schema):
            seen.beside.append(sql)

    def verbatim_noted(session: Session, sql: str) -> int:
        noted(session, sql)
        return verbatim(session, sql)

    def run_noted(session: Session, sql: str, *values: Any) -> int:
        noted(session, sql)
        return run(session, sql, *values)

    monkeypatch.setattr(Session, "packet", fired)
    monkeypatch.setattr(Session, "verbatim", verbatim_noted)
    monkeypatch.setattr(Session, "run", run_noted)
    return seen


@pytest.fixture
def held_first(monkeypatch: pytest.MonkeyPatch, requests: Requests, database: Database, places: App) -> Iterator[Requests]:
    """Before each request that is granted, the same request is made while another client holds each of PLACES."""
    fire, after, building = Gap.fire, Watchdog.after, Watchdog.building
    holder = App(database)
    number = holder.value("SELECT CONNECTION_ID()")
    refused: list[bool] = []

    def queue(real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(watchdog: Watchdog, connection_id: int, *more: Any) -> Any:
            if refused:
                requests.queued.append(connection_id)
            return real(watchdog, connection_id, *more)
        return watched

    def fire_after_holders(gap: Gap, statement: str, **more: Any) -> float:
        limits = gap.limits
        refused.append(True)
        for place in PLACES:
            holder.run("START TRANSACTION")
            holder.rows(f"SELECT 1 FROM `{place}` LIMIT 1")
            gap.limits = replace(limits, gap_wait_s=0)
            with pytest.raises(NoGap, match=rf"{place} is held by connection {number} \(root@\S+, sleep for \d+ s(, transaction open since "
                                            r"\S+ \S+ UTC)?, last statement [0-9a-f]{16}\)") as raised:
                fire(gap, statement, **more)
            assert raised.value.exit_code == 4
            holder.run("COMMIT")
        refused.clear()
        gap.limits = limits
        return fire(gap, statement, **more)

    monkeypatch.setattr(Gap, "fire", fire_after_holders)
    monkeypatch.setattr(Watchdog, "after", queue(after))
    monkeypatch.setattr(Watchdog, "building", queue(building))
    yield requests
    holder.close()


def forward(rollouts: Rollouts, plan: Plan, through: Through) -> None:
    request = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", through=through)
    actions.run(rollouts(plan=plan, accepted=ACCEPTED), request, PlainConductor())


def back(rollouts: Rollouts, plan: Plan, **what: Any) -> None:
    request = RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", **what)
    actions.rollback(rollouts(plan=plan, accepted=ACCEPTED), request, PlainConductor())


@pytest.mark.parametrize("setting", ["path=zero_downtime", "large_rows=1", "path=adr"])
def test_in_a_whole_life_nothing_queues_behind_a_holder(rollouts: Rollouts, places: App, held_first: Requests, setting: str) -> None:
    plan = plan_loader.load("ai_analysis_job", (*ROOMY, setting))
    baseline = places.create_table()

    forward(rollouts, plan, Through.CLEANUP)
    back(rollouts, plan, to=Target.V0, drop_added=True)

    assert held_first.queued == []
    assert held_first.beside == []
    assert len(held_first.fired) > 8
    assert any(statement.startswith("ALTER") for statement in held_first.fired) == (setting == "large_rows=1")
    assert places.create_table() == baseline
    assert places.triggers() == []


def test_a_whole_life_asks_for_few_exclusive_locks(rollouts: Rollouts, seeded: App, requests: Requests) -> None:
    plan = plan_loader.load("ai_analysis_job", ROOMY)
    counted = {}

    for name, act in {"forward": lambda: forward(rollouts, plan, Through.SHADOW_WRITE),
                      "cleanup": lambda: forward(rollouts, plan, Through.CLEANUP),
                      "cleanup back": lambda: back(rollouts, plan, phase=Through.CLEANUP),
                      "back to the baseline": lambda: back(rollouts, plan, to=Target.V0, drop_added=True)}.items():
        before = len(requests.fired)
        act()
        counted[name] = requests.since(before)

    assert counted == {"forward": 2, "cleanup": 2, "cleanup back": 2, "back to the baseline": 2}
    assert requests.beside == []


def test_without_the_guard_this_would_be_seen(database: Database, seeded: App, requests: Requests) -> None:
    with Session(database) as session:
        session.run("DROP TABLE IF EXISTS `_rollout_nothing`")
        session.verbatim("ALTER TABLE `AiAnalysisJob` ADD COLUMN n INT")
        session.run("CREATE TRIGGER t BEFORE INSERT ON AiAnalysisJob FOR EACH ROW SET @a = 1")

    assert [sql.split()[0] for sql in requests.beside] == ["ALTER", "CREATE"]


def test_a_table_that_another_client_has_locked_is_refused_by_name(rollouts: Rollouts, seeded: App, database: Database) -> None:
    before, holder = seeded.create_table(), App(database)
    holder.run("LOCK TABLES AiAnalysisJob WRITE")
    number = holder.value("SELECT CONNECTION_ID()")

    with pytest.raises(FindingsRefused, match=rf"\[blockers\] table AiAnalysisJob: .* connection {number} \(root@.*LOCK TABLES") as raised:
        forward(rollouts, plan_loader.load("ai_analysis_job", ROOMY), Through.SHADOW_WRITE)
    holder.run("UNLOCK TABLES")
    holder.close()

    assert raised.value.exit_code == 3
    assert seeded.create_table() == before


def test_a_table_that_is_locked_later_stops_the_run_by_name_and_the_same_command_goes_on(rollouts: Rollouts, seeded: App,
                                                                                         database: Database) -> None:
    plan, holder = plan_loader.load("ai_analysis_job", ROOMY), App(database)
    number = holder.value("SELECT CONNECTION_ID()")
    request = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line")
    locks = After("backfill", lambda: holder.run("LOCK TABLES AiAnalysisJob WRITE"))

    with pytest.raises(LockWaited, match=rf"1205.*AiAnalysisJob is held by connection {number} ") as raised:
        actions.run(rollouts(plan=plan), request, locks)
    assert raised.value.exit_code == 4
    holder.run("UNLOCK TABLES")
    holder.close()

    assert actions.run(rollouts(plan=plan), request, PlainConductor()).outcome == "done"
