"""The ADR's table as it stands when the first pass begins, made as often as asked, and the ways people fill it by hand."""

from __future__ import annotations

import contextlib
import io
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mysql_batch import mysql_batch
from sqlalchemy import make_url

from flows.demo.traffic.generations import TABLE, V0_COLUMNS
from flows.demo.traffic.seed import seed, split_statements
from steps import passes, plan_loader, sync
from steps.keyset import Keyset
from steps.ledger import Ledger
from steps.mysql import Session, Waits, quote
from steps.target import Target
from steps.walk import Walk

PLAN = plan_loader.load("ai_analysis_job", ("deploy.command=true",))
WIDEN, INDEX = "010_widen_job_type", "090_index_lifecycle_status"
SETS = ("lifecycleStatus = CASE status WHEN 'pending' THEN 'pending' WHEN 'processing' THEN 'running' WHEN 'completed' THEN 'succeeded' "
        "WHEN 'failed' THEN 'failed' END, finishedAt = completedAt, internalErrorMessage = errorMessage")
RENAMED = {"rename_completedAt_to_finishedAt": "ADD COLUMN finishedAt DATETIME(3) NULL AFTER completedAt",
           "rename_errorMessage_to_internalErrorMessage": "ADD COLUMN internalErrorMessage TEXT NULL AFTER errorMessage"}
PATIENT = Waits(lock_wait_timeout_s=600, innodb_lock_wait_timeout_s=50)


class Ground:
    """One server; `seed` holds the rows, every measurement gets a fresh table of its own."""

    def __init__(self, server_url: str, most_rows: int) -> None:
        self.base = make_url(server_url)
        seed(self.target("seed").url.render_as_string(hide_password=False), most_rows)

    def target(self, schema: str) -> Target:
        return Target(self.base.set(database=schema))

    def fresh(self, schema: str, rows: int, *, triggers: bool) -> Session:
        """The expanded table with *rows* rows, nothing filled; the added columns came INSTANT, so rows grow when they are filled."""
        with Session(self.target("mysql")) as root:
            root.run(f"DROP DATABASE IF EXISTS {quote(schema)}")
            root.run(f"CREATE DATABASE {quote(schema)}")
        session = Session(self.target(schema), waits=PATIENT)
        for statement in split_statements((PLAN.folder / "baseline.sql").read_text()):
            session.verbatim(statement)
        session.run("SET SESSION foreign_key_checks = 0, SESSION unique_checks = 0")
        session.verbatim(up(WIDEN))
        columns = ", ".join(map(quote, V0_COLUMNS))
        session.run(f"INSERT INTO {TABLE} ({columns}) SELECT {columns} FROM seed.{TABLE} ORDER BY id LIMIT {rows}")
        for step in PLAN.pre_deploy.step:
            if step.name not in (WIDEN, INDEX):
                session.verbatim(f"ALTER TABLE {TABLE} {RENAMED[step.name]}" if step.rename else up(step.name))
        session.run("SET SESSION foreign_key_checks = 1, SESSION unique_checks = 1")
        session.run(f"ANALYZE TABLE {TABLE}")
        if triggers:
            for trigger in sync.sync_triggers(PLAN.id, sync.pairs(session, PLAN, schema)):
                session.verbatim(trigger.create(TABLE, "CURRENT_USER", None))
        return session


def up(step: str) -> str:
    return (PLAN.folder / f"{step}.up.sql").read_text()


def seconds(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def index(session: Session) -> None:
    session.verbatim(up(INDEX))


def walk(session: Session, **settings: Any) -> Walk:
    schema = session.target.schema
    return Walk(session, Keyset.of(session, schema, TABLE), sync.pairs(session, PLAN, schema),
                PLAN.backfill.model_copy(update=settings))


def fill(target: Target, told: Callable[[passes.Progress], None] = lambda _: None, **settings: Any) -> None:
    """Our pass from start to its last exact look, as `rollout run` does it."""
    with Session(target) as session, Session(target) as for_ledger:
        ledger = Ledger(for_ledger, target.schema, TABLE, PLAN.id)
        ledger.create()
        left = passes.fill(walk(session, **settings), ledger, "first", told)
        if left.count:
            raise RuntimeError(f"{left.count} rows left")


def fill_elsewhere(url: str, settings: dict[str, Any], answer: Any) -> None:
    """The same in a process of its own, which knows its peak memory."""
    fill(Target(make_url(url)), **settings)
    answer.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def one_update(session: Session) -> None:
    session.run(f"UPDATE {TABLE} SET {SETS}")


def by_mysql_batch(session: Session) -> None:
    """
    The PyPI package's own select-ids, update-those-ids, with its defaults (10,000 read, 50 written).

    Its loop begins at key 0 and prints keys unquoted, so it takes whole numbers only: here its `update_batch` gets quoted keys.
    """
    url = session.target.url
    mysql_batch.connection = mysql_batch.connect(url.host, url.username, url.port or 3306, str(url.password or ""), url.database)
    mysql_batch.confirmed_write = True
    last = ""
    with contextlib.redirect_stdout(io.StringIO()), mysql_batch.connection as connection, connection.cursor() as cursor:
        while True:
            cursor.execute(f"SELECT id FROM {TABLE} WHERE id > %s ORDER BY id LIMIT 10000", (last,))
            keys = [row["id"] for row in cursor.fetchall()]
            connection.commit()
            if not keys:
                return
            for start in range(0, len(keys), 50):
                mysql_batch.update_batch([connection.escape(key) for key in keys[start:start + 50]], TABLE, SETS)
            last = keys[-1]


def filled(session: Session) -> int:
    """How many rows agree in all pairs."""
    pairs = " AND ".join(pair.agrees() for pair in replace(walk(session)).pairs)
    return int(session.value(f"SELECT COUNT(*) FROM {TABLE} WHERE {pairs}"))
