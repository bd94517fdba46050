"""
What was done and how far: runs, phases, passes and an append-only event log, in the target's own server (design section 2).

Written before Prefect hears of anything. Reading never fails on a server where nothing was ever run: absent tables are an
empty ledger. Texts are masked on their way in.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from steps import __version__
from steps.another_session import over_another
from steps.errors import ConnectionLost, Refused, RolloutError, StatementFailed
from steps.ledger_version import SCHEMA_VERSION, migrate
from steps.masking import mask, masked
from steps.mysql import VALUE, Row, Session, quote, shown
from steps.phase import Phase

DEFINITION = Path(__file__).resolve().parent.parent / "sql" / "ledger.sql"
TABLES = ("meta", "plan", "run", "phase", "pass", "lane", "pace", "control", "quarantine", "event", "owner")
OF_A_PASS = ("pass", "lane", "pace", "quarantine")
NO_SUCH_TABLE, DENIED = 1146, {1044, 1142}
STOPPED = 4
CUT_SHORT = "interrupted"


@dataclass(frozen=True)
class Event:
    """One line of the audit trail: what was done to which step, with which SQL, how long it took, how many rows."""

    phase: str
    step: str
    outcome: str
    direction: str = "forward"
    statement: str | None = None
    duration_ms: float | None = None
    rows: int | None = None
    detail: dict[str, Any] | None = None


class Ledger:
    """
    The ledger of one plan on one table, over a session of its own that nothing else uses.

    `fence` asserts ownership on the session it is given before whatever decides how the rollout goes on is written (case C93).
    """

    def __init__(self, session: Session, table_schema: str, table: str, plan_id: str, ledger_schema: str | None = None) -> None:
        self.session = session
        self.key = (table_schema, table, plan_id)
        self.home = ledger_schema or table_schema
        self.run_id = "-"
        self.fence: Callable[[Session], None] = lambda _: None

    def _change(self, sql: str, *values: Any) -> None:
        self.fence(self.session)
        self.session.run(sql, *values)

    def table(self, name: str) -> str:
        return f"{quote(self.home)}.{quote('_rollout_' + name)}"

    def create(self) -> None:
        """Make the ledger's tables where they are missing. Safe to repeat; takes no lock on any other table."""
        statements = [part for part in DEFINITION.read_text().split(";\n") if "CREATE TABLE" in part]
        for statement in statements:
            self.session.verbatim(statement[statement.index("CREATE TABLE"):].replace("`_rollout_", f"{quote(self.home)}.`_rollout_", 1))
        self.session.run(f"INSERT IGNORE INTO {self.table('meta')} VALUES (1, {VALUE}, {VALUE})", SCHEMA_VERSION, __version__)
        migrate(self.session, self.home, self.table)

    def read(self, sql: str, *values: Any) -> list[Row]:
        """Rows of *sql*, or none where the ledger was never made."""
        try:
            return self.session.query(sql, *values)
        except StatementFailed as error:
            if error.errno == NO_SUCH_TABLE:
                return []
            if error.errno in DENIED:
                raise Refused(f"ledger in {self.home}", f"could not look: {error.reason}", "grant SELECT on it") from None
            raise

    def _rows(self, columns: str, table: str, extra: str = "", *values: Any) -> list[Row]:
        return self.read(f"SELECT {columns} FROM {self.table(table)} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                         f"AND plan_id = {VALUE} {extra}", *self.key, *values)

    # Runs

    @contextmanager
    def run(self, verb: str, actor: str, reason: str, options: dict[str, Any]) -> Iterator[str]:
        """
        Record a run from its start to its end, with exit code and outcome; an error is recorded and raised on.

        Only for whoever owns the table: runs that have no end yet were killed, and are marked so.
        """
        self.run_id = uuid.uuid4().hex
        self.end_killed_runs()
        self.session.run(
            f"INSERT INTO {self.table('run')} (run_id, table_schema, table_name, plan_id, verb, actor, reason, host, options, "
            f"tool_version, started_at) VALUES ({', '.join([VALUE] * 10)}, UTC_TIMESTAMP(3))", self.run_id, *self.key, verb,
            mask(actor), mask(reason), socket.gethostname(), json.dumps(masked(options)), __version__)
        try:
            yield self.run_id
        except BaseException as error:
            from_outside = not isinstance(error, Exception)  # Ctrl-C, SIGTERM, Prefect's own signals: no fault of ours
            outcome = str(error) or (CUT_SHORT if from_outside else type(error).__name__)
            self.end_run(STOPPED if from_outside else getattr(error, "exit_code", 1), outcome)
            raise
        self.end_run(0, "done")

    def end_killed_runs(self, unless_held: str | None = None) -> None:
        """Mark runs that have no end yet; for whoever knows that none is at work, or that one which is holds the lock *unless_held*."""
        held = f" AND IS_USED_LOCK({VALUE}) IS NULL" if unless_held else ""
        self.session.run(f"UPDATE {self.table('run')} SET ended_at = UTC_TIMESTAMP(3), outcome = {VALUE} WHERE table_schema = {VALUE} "
                         f"AND table_name = {VALUE} AND plan_id = {VALUE} AND ended_at IS NULL{held}", "never ended: killed or lost",
                         *self.key, *([unless_held] if unless_held else []))

    def end_run(self, exit_code: int, outcome: str) -> None:
        """Record how the run ended, over a new connection if its own is lost; best effort, because the run's own error matters more."""
        def record(session: Session) -> None:
            session.run(f"UPDATE {self.table('run')} SET ended_at = UTC_TIMESTAMP(3), exit_code = {VALUE}, outcome = {VALUE} "
                        f"WHERE run_id = {VALUE}", exit_code, mask(outcome)[:2000], self.run_id)

        with suppress(RolloutError):
            try:
                record(self.session)
            except ConnectionLost:
                over_another(self.session.target, record)

    def runs(self) -> list[dict[str, Any]]:
        names = ("run_id", "verb", "actor", "reason", "host", "options", "tool_version", "started_at", "ended_at", "exit_code", "outcome")
        return [_named(names, row) for row in self._rows(", ".join(names), "run", "ORDER BY started_at, run_id")]

    # The plan as it was first run

    def remember_plan(self, identity_hash: str, identity: dict[str, Any], ladder: dict[str, Any], baseline_sql: str) -> None:
        """Freeze identity, ladder and baseline at the first start; a second call leaves them as they are."""
        self._change(f"INSERT IGNORE INTO {self.table('plan')} (table_schema, table_name, plan_id, identity_hash, identity, ladder, "
                     f"baseline_sql, created_at) VALUES ({', '.join([VALUE] * 7)}, UTC_TIMESTAMP(3))",
                     *self.key, identity_hash, json.dumps(identity), json.dumps(ladder), baseline_sql)

    def plan(self) -> dict[str, Any] | None:
        names = ("identity_hash", "identity", "ladder", "baseline_sql", "created_at")
        rows = self._rows(", ".join(names), "plan")
        return _named(names, rows[0]) if rows else None

    def extend_ladder(self, ladder: dict[str, Any]) -> None:
        """Replace the frozen ladder by one that an older tool could not climb to its end; the lower stairs are the same."""
        self._change(f"UPDATE {self.table('plan')} SET ladder = {VALUE} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                     f"AND plan_id = {VALUE}", json.dumps(ladder), *self.key)

    def end_plan(self, *, ended: bool) -> None:
        """Mark the plan as ended by cleanup, or as begun again by cleanup's way back."""
        self._change(f"UPDATE {self.table('plan')} SET ended_at = {'UTC_TIMESTAMP(3)' if ended else 'NULL'} WHERE table_schema = "
                     f"{VALUE} AND table_name = {VALUE} AND plan_id = {VALUE}", *self.key)

    def unfinished_plans(self) -> list[str]:
        """Other plans that were begun on this table and have not ended; columns of theirs may still be taken away."""
        return [str(row[0]) for row in self.read(
            f"SELECT p.plan_id FROM {self.table('plan')} p WHERE p.table_schema = {VALUE} AND p.table_name = {VALUE} "
            f"AND p.plan_id <> {VALUE} "
            f"AND NOT EXISTS (SELECT 1 FROM {self.table('phase')} f WHERE f.table_schema = p.table_schema AND f.table_name = p.table_name "
            "AND f.plan_id = p.plan_id AND f.phase = 'cleanup' AND f.state = 'done')", *self.key)]

    def forget_plan(self) -> None:
        """After the last way back the table is at its baseline, and another plan text may start afresh."""
        with self.session.transaction():  # killed half-way, a second call would find nothing to do and leave the rest
            for table in ("plan", "phase", "control", *OF_A_PASS):
                self._change(f"DELETE FROM {self.table(table)} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                             f"AND plan_id = {VALUE}", *self.key)

    # Phases

    def phases(self) -> dict[Phase, dict[str, Any]]:
        """Each recorded phase's state, detail, run and time."""
        return {Phase(row[0]): _named(("phase", "state", "detail", "run_id", "at"), row)
                for row in self._rows("phase, state, detail, run_id, at", "phase")}

    def phase_state(self, phase: Phase) -> str:
        return str(self.phases().get(phase, {}).get("state", "-"))

    def set_phase(self, phase: Phase, state: str, detail: dict[str, Any] | None = None) -> None:
        self._change(f"REPLACE INTO {self.table('phase')} VALUES ({', '.join([VALUE] * 7)}, UTC_TIMESTAMP(3))",
                     *self.key, phase.value, state, json.dumps(masked(detail or {})), self.run_id)

    def record(self, event: Event, age_s: float = 0, session: Session | None = None) -> None:
        """Append *event*, which happened *age_s* ago, to the audit trail; over *session* where ours is lost."""
        (session or self.session).run(
            f"INSERT INTO {self.table('event')} (run_id, table_schema, table_name, plan_id, at, phase, direction, step, outcome, "
            f"statement, duration_ms, row_count, detail) VALUES ({VALUE}, {VALUE}, {VALUE}, {VALUE}, "
            f"UTC_TIMESTAMP(3) - INTERVAL {int(age_s * 1_000_000)} MICROSECOND, "
            f"{', '.join([VALUE] * 8)})", self.run_id, *self.key, event.phase, event.direction, event.step[:191], event.outcome,
            shown(event.statement) if event.statement else None, event.duration_ms, event.rows,
            json.dumps(masked(event.detail or {}), default=str))

    def events(self) -> list[dict[str, Any]]:
        names = ("id", "run_id", "at", "phase", "direction", "step", "outcome", "statement", "duration_ms", "row_count", "detail")
        return [_named(names, row) for row in self._rows(", ".join(names), "event", "ORDER BY id")]

    def passes(self) -> dict[str, dict[str, Any]]:
        """How far each pass is: rows examined by the latest sweep and changed by all, those of lanes at work among them."""
        names = ("pass", "sweep", "cursor", "rows_examined", "rows_changed", "started_at", "finished_at")
        found = {str(row[0]): _named(names, row) for row in self._rows(", ".join(f"`{n}`" for n in names), "pass")}
        for name, examined, changed in self._rows("`pass`, SUM(rows_examined), SUM(rows_changed)", "lane", "GROUP BY `pass`"):
            if str(name) in found:  # one that began between the two reads is for the next look
                found[str(name)]["rows_examined"] += int(examined)
                found[str(name)]["rows_changed"] += int(changed)
        return found

    def start_pass(self, name: str) -> None:
        """Begin pass *name*, or leave it where it stands when it was begun before."""
        self._change(f"INSERT IGNORE INTO {self.table('pass')} VALUES ({', '.join([VALUE] * 4)}, 1, NULL, 0, 0, "
                     "UTC_TIMESTAMP(3), NULL)", *self.key, name)

    def reset_pass(self, name: str) -> None:
        """The next run of pass *name* starts at the first row again."""
        with self.session.transaction():  # lanes without their pass, or a pass without its lanes, would be half a story
            for table in OF_A_PASS:
                self._change(f"DELETE FROM {self.table(table)} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                             f"AND plan_id = {VALUE} AND `pass` = {VALUE}", *self.key, name)

    def move_pass(self, session: Session, name: str, cursor: str | None, examined: int, changed: int) -> None:
        """Advance pass *name* on *session*, in the same transaction as the chunk it speaks of (case C61)."""
        self.fence(session)  # last in the chunk: what somebody else goes on with meanwhile is not moved back
        session.run(f"UPDATE {self.table('pass')} SET `cursor` = {VALUE}, rows_examined = rows_examined + {VALUE}, "
                    f"rows_changed = rows_changed + {VALUE} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                    f"AND plan_id = {VALUE} AND `pass` = {VALUE}", cursor, examined, changed, *self.key, name)

    def end_sweep(self, name: str, *, finished: bool) -> None:
        """The cursor ran through: either the pass is finished or another sweep begins at the first row and counts anew."""
        done = "finished_at = UTC_TIMESTAMP(3)" if finished else "sweep = sweep + 1, rows_examined = 0"
        self._change(f"UPDATE {self.table('pass')} SET {done}, `cursor` = NULL WHERE table_schema = {VALUE} "
                     f"AND table_name = {VALUE} AND plan_id = {VALUE} AND `pass` = {VALUE}", *self.key, name)


def _named(names: tuple[str, ...], row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in zip(names, row, strict=True):
        if name in ("detail", "options", "identity", "ladder", "cursor") and isinstance(value, str):
            found[name] = json.loads(value)
        else:
            found[name] = value.isoformat(timespec="milliseconds") + "Z" if isinstance(value, datetime) else value
    return found
