"""Where the victims die: schemas that are copied from a standing state, what the application does there meanwhile, what is left."""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import make_url

from flows.demo.traffic.generations import TABLE, V0_COLUMNS, V1_COLUMNS, V2_COLUMNS
from steps.ownership import lock_name
from steps.scratch import scratch_name
from steps.target import Target
from tests.conftest import SHIPPED, App, add_jobs, statements

GENERATIONS = {"v0": V0_COLUMNS, "v1": V1_COLUMNS, "v2": V2_COLUMNS}
LEFT_S = 5.0
MARKED = "2026-02-03 03:03:03.333"
MOVED_BY_V2 = "c000002"
WRITES: dict[str, list[tuple[str, dict[str, str]]]] = {
    "v0": [("c000001", {"status": "'completed'", "completedAt": "'2026-02-02 02:02:02.222'", "errorMessage": "'late é'"})],
    "v1": [("c000006", {"lifecycleStatus": "'succeeded'", "finishedAt": "'2026-05-05 05:05:05.555'", "internalErrorMessage": "NULL"}),
           ("c000006", {"lifecycleStatus": "'running'", "finishedAt": "NULL", "internalErrorMessage": "'new ü'"})],
    "v2": [(MOVED_BY_V2, {"lifecycleStatus": "'failed'", "finishedAt": "'2026-04-04 04:04:04.444'", "internalErrorMessage": "'v2 ø'"})],
}


@dataclass(frozen=True)
class Copy:
    """A whole schema as statements, so that each case begins in the same state."""

    schema: str
    statements: list[str] = field(repr=False)

    def under(self, schema: str) -> list[str]:
        """The same statements for another schema."""
        archive = archive_name(self.schema), archive_name(schema)
        return [statement.replace(self.schema, schema).replace(*archive) for statement in self.statements]

    def anonymous(self) -> list[str]:
        return self.under("schema")


class Stage:
    """One server, as many schemas as asked for, one after the other; one client connection of an application."""

    def __init__(self, server_url: str) -> None:
        self._base = make_url(server_url)
        self.app = App(Target(self._base.set(database="mysql")))
        self.schema = ""
        self.longest_s = 0.0
        self.acknowledged = 0

    @property
    def target(self) -> Target:
        return Target(self._base.set(database=self.schema))

    @property
    def url(self) -> str:
        return self.target.url.render_as_string(hide_password=False)

    def reconnect(self) -> None:
        """The application comes back after its connection or its server was lost."""
        self.app.close()
        self.app = App(self.target if self.schema else Target(self._base.set(database="mysql")))

    def begin(self) -> None:
        """A schema of its own, empty, instead of the one before."""
        self.end()
        self.schema = f"k_{uuid.uuid4().hex[:20]}"
        self.app.run(f"CREATE DATABASE `{self.schema}` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci")
        self.app.run(f"USE `{self.schema}`")

    def end(self) -> None:
        if self.schema:
            self.app.run(f"DROP DATABASE IF EXISTS `{self.schema}`")
            self.app.run(f"DROP DATABASE IF EXISTS `{scratch_name(self.target, TABLE)}`")

    def seed(self) -> None:
        """The ADR's old database and nine jobs in all four states."""
        self.begin()
        for statement in statements((SHIPPED / "baseline.sql").read_text()):
            self.app.run(statement)
        self.app.run("INSERT INTO `User` (id, email, createdAt, updatedAt) VALUES ('u1', 'u1@example.org', '2026-01-01', '2026-01-01')")
        add_jobs(self.app, 9)
        self.app.run(f"UPDATE {TABLE} SET sessionId = CONCAT('s', id), answerId = 'a', queuedAt = '2026-01-01', createdAt = '2026-01-01', "
                     "updatedAt = updatedAt WHERE id < 'c000005'")
        self.app.run(f"UPDATE {TABLE} SET queuedAt = '2026-01-01', createdAt = '2026-01-01', updatedAt = updatedAt")
        self.app.run(f"UPDATE {TABLE} SET status = 'processing', completedAt = NULL, errorMessage = 'new ü', updatedAt = '{MARKED}' "
                     "WHERE id = 'c000006'")

    # Copies of a state

    def copied(self) -> Copy:
        app, made, triggers = self.app, [], []
        escape = app.connection.escape
        for (table,) in app.rows("SHOW TABLES"):
            made.append(_as_it_was_made(app.create_table(table)))
            made += [f"INSERT INTO `{table}` VALUES ({', '.join(map(escape, row))})" for row in app.rows(f"SELECT * FROM `{table}`")]
        for row in app.rows("SHOW TRIGGERS"):
            _name, mode, sql, client, collation, *_ = app.rows(f"SHOW CREATE TRIGGER `{row[0]}`")[0]
            triggers += [f"SET SESSION sql_mode = '{mode}', character_set_client = {client}, collation_connection = {collation}", sql]
        return Copy(self.schema, [*made, *triggers])

    def restore(self, copy: Copy) -> None:
        self.begin()
        kept = self.app.rows("SELECT @@sql_mode, @@character_set_client, @@collation_connection")[0]
        self.app.run("SET SESSION foreign_key_checks = 0")
        with self.app.connection.cursor() as cursor:
            for statement in copy.under(self.schema):
                cursor.execute(statement)
        self.app.run("SET SESSION foreign_key_checks = 1, sql_mode = %s, character_set_client = %s, collation_connection = %s", *kept)

    # What the application does

    def living(self) -> list[str]:
        """The generations that may have instances now, by what the ledger says."""
        states = self.states()
        columns = {str(row[0]) for row in self.app.rows(f"SHOW COLUMNS FROM {TABLE}")}
        if states.get("cleanup", "undone") == "undone":
            return ["v0", *(["v1"] if states.get("deploy") in ("done", "running") else [])]
        return ["v2", *(["v1"] if set(V1_COLUMNS) <= columns and self.app.triggers() else [])]

    def use(self, generation: str) -> None:
        """
        What living clients of *generation* send: read, insert and update, each naming every column of their model.

        What is left is the same however often this comes. V0 moves one job on, V2 another; V1 moves a third there and back.
        """
        began = time.monotonic()
        columns = GENERATIONS[generation]
        names = ", ".join(f"`{column}`" for column in columns)
        rows = self.app.rows(f"SELECT {names} FROM {TABLE} ORDER BY id")
        assert len(rows) == 9
        self.app.run("START TRANSACTION")
        self.app.run(f"INSERT INTO {TABLE} ({names}) VALUES ({', '.join(['%s'] * len(columns))})", "born", *rows[0][1:])
        self._agree("born")
        self.app.run("ROLLBACK")
        for job, told in WRITES[generation]:
            values = {column: f"`{column}`" for column in columns if column != "id"} | told | {"updatedAt": f"'{MARKED}'"}
            self.app.run(f"UPDATE {TABLE} SET {', '.join(f'`{c}` = {v}' for c, v in values.items())} WHERE id = '{job}'")
            self.acknowledged += 1
            self._agree(job)
        self.longest_s = max(self.longest_s, time.monotonic() - began)

    def _agree(self, job: str) -> None:
        """Where both triggers stand, what one side wrote the other has."""
        if len(self.app.triggers()) == 2:
            pairs = ("(completedAt <=> finishedAt) AND (errorMessage <=> internalErrorMessage) AND CONCAT(status, '/', lifecycleStatus) IN "
                     "('pending/pending', 'processing/running', 'completed/succeeded', 'failed/failed')")
            assert self.app.value(f"SELECT {pairs} FROM {TABLE} WHERE id = %s", job) == 1

    # What is left

    def states(self) -> dict[str, str]:
        if "_rollout_phase" not in {row[0] for row in self.app.rows("SHOW TABLES")}:
            return {}
        return {str(phase): str(state) for phase, state in self.app.rows("SELECT phase, state FROM _rollout_phase ORDER BY phase")}

    def table(self, columns: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Rows of the application's tables, of the main one only *columns*."""
        names = ", ".join(f"`{column}`" for column in columns) if columns else "*"
        return {TABLE: self.app.rows(f"SELECT {names} FROM {TABLE} ORDER BY id"), "User": self.app.rows("SELECT * FROM User")}

    def left(self) -> dict[str, Any]:
        """Everything that a run may leave behind and that does not differ from run to run."""
        app, found = self.app, dict[str, Any]()
        for (table,) in app.rows("SHOW TABLES"):
            name = re.sub(r"archive_\w+", "archive", table)
            found[f"definition of {name}"] = re.sub(r"( AUTO_INCREMENT=\d+)|(?<=archive_)\w+", "", app.create_table(table))
            if "archive" in table:
                found["archive"] = app.rows(f"SELECT * FROM `{table}` WHERE id <> %s ORDER BY id", MOVED_BY_V2)
        found["triggers"] = app.rows("SELECT TRIGGER_NAME, EVENT_MANIPULATION, ACTION_ORDER, ACTION_STATEMENT, SQL_MODE, DEFINER, "
                                     "CHARACTER_SET_CLIENT, COLLATION_CONNECTION FROM information_schema.TRIGGERS "
                                     "WHERE TRIGGER_SCHEMA = DATABASE() ORDER BY 1")
        found["phases"] = self.states()
        found["passes"] = app.rows("SELECT `pass`, `cursor`, finished_at IS NOT NULL FROM _rollout_pass ORDER BY 1")
        found["plans"] = app.rows("SELECT plan_id, baseline_sql, ended_at IS NOT NULL FROM _rollout_plan")
        found["runs without an end"] = app.value("SELECT COUNT(*) FROM _rollout_run WHERE ended_at IS NULL")
        found["owners"] = app.rows("SELECT actor, pid FROM _rollout_owner")
        return found

    def nothing_held(self) -> list[str]:
        """Sessions, locks and scratch schemas of ours that are still there; a moment is given to sessions to end."""
        deadline = time.monotonic() + LEFT_S
        while (held := self._held()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return held

    def _held(self) -> list[str]:
        app, scratch = self.app, scratch_name(self.target, TABLE)
        found = [f"session {row}" for row in app.rows(
            "SELECT ID, COMMAND, STATE FROM information_schema.PROCESSLIST WHERE DB IN (%s, %s) AND ID <> CONNECTION_ID()",
            self.schema, scratch)]
        found += [f"metadata lock {row}" for row in app.rows(
            "SELECT OBJECT_NAME, LOCK_TYPE FROM performance_schema.metadata_locks WHERE OBJECT_SCHEMA = %s AND OWNER_THREAD_ID <> "
            "PS_CURRENT_THREAD_ID()", self.schema)]
        for lock in (lock_name(self.schema, TABLE), scratch[:64]):
            found += [f"lock {lock}"] if app.value("SELECT IS_USED_LOCK(%s)", lock) is not None else []
        return found + [f"schema {row[0]}" for row in app.rows("SHOW DATABASES LIKE %s", scratch)]


def _as_it_was_made(create: str) -> str:
    """SHOW CREATE TABLE without collations that are the table's own: MySQL remembers that they were named, and shows more then."""
    own = create.rpartition(" COLLATE=")[2].split()[0]
    return re.sub(rf"^(  `.*?) COLLATE {own}\b", r"\1", create, flags=re.MULTILINE)


def archive_name(schema: str) -> str:
    """The archive's name, which holds a hash of the schema's."""
    return "_rollout_archive_" + hashlib.sha256(f"{schema}/{TABLE}/ai_analysis_job".encode()).hexdigest()[:24]
