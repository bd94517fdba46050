"""
Phase 4: is everything as the plan says? Exact, not sampled, and it proves that it looked (ADR section 8; case C64).

Three answers: pass, fail, inconclusive. Fail goes where the plan's `verify.on_fail` says; inconclusive waits for a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from steps import backfill, clocks, exact_look, server_trouble, sql_text
from steps.commands import run_command
from steps.errors import Refused, StatementFailed, Stopped, VerifyFailed
from steps.mysql import Session, quote
from steps.phase import Outcome, Phase, Verdict
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState

QUERY_LIMIT_MS = 60_000


@dataclass
class Report:
    """What verify looked at and what it found."""

    rows_examined: int = 0
    queries_run: int = 0
    expected: int = 0
    not_due: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        return Verdict.FAIL if self.wrong else Verdict.INCONCLUSIVE if self.unclear else Verdict.PASS

PHASE = Phase.VERIFY


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(Phase.VERIFY) == "done"


def steps(rollout: Rollout) -> list[Step]:
    return [Step("verify", lambda: _verify(rollout))]


def back(rollout: Rollout) -> list[Step]:
    """Only the record is undone."""
    return [Step("verify counts as not made", lambda: _not_made(rollout))]


def look(rollout: Rollout) -> Report:
    """Everything verify looks at; of it only how far the rows are is recorded. Takes no lock; safe to repeat at any time."""
    report = Report()
    _schema(rollout, report)
    if not report.wrong and rollout.plan.filled_columns:
        _rows(rollout, report)
    _queries(rollout, report)
    _command(rollout, report)
    return report


def _rows(rollout: Rollout, report: Report) -> None:
    """
    Every row. Without sync, rows written since V1 may have been there may differ; they are counted as expected (F4).

    That is from phase 1's end on: a row that V1 wrote before the backfill began is none that the backfill may fill.
    """
    walk, unsynced = rollout.walk(), rollout.sync_state() is not SyncState.ON
    changed_at, filled = rollout.plan.backfill.changed_at, rollout.ledger.passes().get(backfill.PASS)
    expanded = rollout.ledger.phases().get(Phase.PRE_DEPLOY)
    among = "TRUE"
    if unsynced and changed_at and filled and expanded:
        among = f"{quote(changed_at)} < '{str(expanded['at']).replace('T', ' ').rstrip('Z')}'"
    left = exact_look.looked(walk, rollout.ledger, "verify", rollout.told, among)
    report.rows_examined = left.rows_examined
    pairs = ", ".join(f"{pair}: {count}" for pair, count in left.by_pair.items())
    found = f"{left.count} of {left.rows_examined} rows disagree ({pairs}; keys: {', '.join(left.keys)})"
    if left.count and unsynced and not changed_at:
        report.unclear.append(f"{found}; without sync and without backfill.changed_at nobody can tell which of them were written since")
    elif left.count:
        report.wrong.append(found)
    if among != "TRUE":
        report.expected = exact_look.looked(walk, rollout.ledger, "verify, all rows", rollout.told).count - left.count


def _schema(rollout: Rollout, report: Report) -> None:
    try:
        here, top = rollout.position(), rollout.ladder().expanded
        if here != top:
            report.wrong.append(f"table {rollout.table} stands on stair {here} of {top}")
    except Refused as drifted:
        report.wrong.append(str(drifted))
    late = rollout.plan.plan.syncs_late and rollout.ledger.phase_state(Phase.SHADOW_WRITE) != "done"
    if rollout.plan.filled_columns and not late and (state := rollout.sync_state()) is not SyncState.ON:
        report.wrong.append(f"sync triggers: {state.value}")


def _queries(rollout: Rollout, report: Report) -> None:
    synced = not rollout.plan.filled_columns or rollout.sync_state() is SyncState.ON
    with Session(rollout.target, read_timeout_s=QUERY_LIMIT_MS // 1000 + 10) as session:
        session.run(f"SET SESSION max_execution_time = {QUERY_LIMIT_MS}")
        for name, text in rollout.plan.queries.items():
            query = sql_text.query_statement(rollout.plan.folder / name, text)
            if query.needs_sync and not synced:
                report.not_due.append(name)
                continue
            try:
                rows = session.read_verbatim(query.sql)
            except StatementFailed as error:
                (report.unclear if server_trouble.interrupted(error) else report.wrong).append(f"{name}: {error.reason}")
                continue
            report.queries_run += 1
            if not _as_expected(query.expect, rows):
                report.wrong.append(f"{name}: expected {query.expect}, got {_shape(rows)}")


def _as_expected(expect: str, rows: list[tuple[object, ...]]) -> bool:
    if expect == "no rows":
        return not rows
    if expect == "some rows":
        return bool(rows)
    single = len(rows) == 1 and len(rows[0]) == 1
    return single and (expect == "one value" or str(rows[0][0]) == expect.removeprefix("value ").strip())


def _shape(rows: list[tuple[object, ...]]) -> str:
    """How many rows, never what is in them (case C86)."""
    return f"{len(rows)} rows of {len(rows[0])} columns" if rows else "no rows"


def _command(rollout: Rollout, report: Report) -> None:
    command = rollout.plan.verify.command
    if not command:
        return
    with rollout.timed(Phase.VERIFY, "verify command", statement=command, outcome="ran") as facts:
        code, output = run_command(command, rollout.plan.verify.deadline_s, {"ROLLOUT_PLAN": rollout.plan.id})
        facts |= {"exit": code, "output": output}
    if code is None:
        report.unclear.append(f"verify.command ran over its deadline of {rollout.plan.verify.deadline_s} s")
    elif code in (126, 127):
        report.unclear.append(f"verify.command could not be started (exit {code})")
    elif code:
        report.wrong.append(f"verify.command ended with {code}")


def _verify(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(Phase.VERIFY, "running")
    with rollout.timed(Phase.VERIFY, "look at rows, schema, triggers and smoke queries") as facts:
        report = look(rollout)
        facts |= {"rows": report.rows_examined, "queries": report.queries_run, "verdict": report.verdict.value, "wrong": report.wrong,
                  "unclear": report.unclear, "outcome": report.verdict.value}
    detail = {"verdict": report.verdict.value, "rows examined": report.rows_examined, "queries run": report.queries_run,
              "expected to differ": report.expected, "queries not due without sync": report.not_due,
              "wrong": report.wrong, "unclear": report.unclear, "by_tool_clock": clocks.now(rollout.session).by_tool}
    rollout.ledger.set_phase(Phase.VERIFY, "done" if report.verdict is Verdict.PASS else report.verdict.value, detail)
    if report.verdict is Verdict.FAIL:
        raise VerifyFailed(f"table {rollout.table}", "; ".join(report.wrong), f"on_fail = {rollout.plan.on_fail}")
    if report.verdict is Verdict.INCONCLUSIVE:
        raise Stopped("verify", f"inconclusive: {'; '.join(report.unclear)}", "remove the cause, then run the same command again")
    return Outcome.DONE


def _not_made(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(Phase.VERIFY, "undone")
    return Outcome.DONE
