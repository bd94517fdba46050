"""Before any DDL none of our own connections holds the table, and none has a transaction open (cases C03, C99)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Through
from flows.params import Target as To
from steps import plan_loader
from steps.mysql import Session
from steps.rollout import Rollout
from steps.target import Target
from tests.conftest import BY_COMMAND, App

DDL = ("ALTER TABLE", "CREATE TRIGGER", "DROP TRIGGER", "LOCK TABLES")
QUICK = (*BY_COMMAND, "cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0",
         "cleanup.cooling_s=0")
ACCEPTED = frozenset({"cleanup", "cleanup-unseen", "discard-added"})
HELD = ("SELECT t.PROCESSLIST_ID FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = "
        "m.OWNER_THREAD_ID WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = DATABASE() AND m.OBJECT_NAME = 'AiAnalysisJob' "
        "AND m.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID <> {mine}")
OPEN = "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id IN ({ours})"


class Watched:
    """Looks, before each statement that needs an exclusive lock, at what our sessions hold; nobody else is on the table."""

    def __init__(self, onlooker: App) -> None:
        self.onlooker, self.ours, self.looked, self.wrong = onlooker, set[int](), 0, list[str]()

    def before(self, session: Session, sql: str) -> None:
        self.ours.add(session.connection_id)
        if not sql.startswith(DDL) or "_rollout_rehearsal_" in (session.schema or ""):
            return
        self.looked += 1
        self.wrong += [f"{sql[:40]}: connection {number} holds the table" for (number,) in
                       self.onlooker.rows(HELD.format(mine=session.connection_id))]
        self.wrong += [f"{sql[:40]}: connection {number} has a transaction open" for (number,) in
                       self.onlooker.rows(OPEN.format(ours=", ".join(map(str, self.ours))))]


@pytest.fixture
def watched(seeded: App, monkeypatch: pytest.MonkeyPatch) -> Watched:
    found = Watched(seeded)
    verbatim, packet = Session.verbatim, Session.packet

    def watched_verbatim(self: Session, sql: str) -> int:
        found.before(self, sql)
        return verbatim(self, sql)

    def watched_packet(self: Session, first: str, second: str, guard: Any) -> None:
        found.before(self, second)
        packet(self, first, second, guard)

    monkeypatch.setattr(Session, "verbatim", watched_verbatim)
    monkeypatch.setattr(Session, "packet", watched_packet)
    return found


def test_no_session_of_ours_is_in_the_way_of_our_own_ddl(rollouts: Callable[..., Rollout], watched: Watched) -> None:
    plan = plan_loader.load("ai_analysis_job", QUICK)
    asked = {"plan": "ai_analysis_job", "by": "tester", "reason": "because", "database": "command line"}

    actions.run(rollouts(plan=plan, accepted=ACCEPTED), RunRequest(**asked, through=Through.CLEANUP), PlainConductor())
    actions.rollback(rollouts(plan=plan, accepted=ACCEPTED), RollbackRequest(**asked, to=To.V0, drop_added=True), PlainConductor())

    assert watched.looked > 30
    assert watched.wrong == []


def test_one_that_is_would_be_seen(database: Target, watched: Watched) -> None:
    with Session(database) as one, Session(database) as other:
        one.verbatim("CREATE TABLE other (id INT PRIMARY KEY)")
        with one.transaction():
            one.query("SELECT id FROM AiAnalysisJob FOR UPDATE")
            watched.before(other, "ALTER TABLE AiAnalysisJob ADD COLUMN z INT")

    assert [text.partition("connection ")[2] for text in watched.wrong] == [
        f"{one.connection_id} holds the table", f"{one.connection_id} has a transaction open"]
