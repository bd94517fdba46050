"""
One round of the parity watch: every row held against its other side once, over as many looks as that takes.

How far it is stands in the ledger, with the keys of the rows that disagree; both move in one transaction, so a look that is killed
loses at most a chunk. A round whose table a rollout has worked on meanwhile proves nothing and begins anew. It owns nothing: nobody
finds the table busy because of it, and it steps aside at the next chunk for whoever takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from steps import cancellation, catalogue, exact_look, quarantine, waits
from steps.errors import Stopped
from steps.exact_look import SECOND_LOOK_S, WATCH, Brake, Disagreement, Wrong
from steps.keyset import Key, decode, encode
from steps.ledger import Ledger
from steps.mysql import VALUE
from steps.ownership import lock_name
from steps.pace import Pace
from steps.rollout import Rollout
from steps.throttle import Throttle
from steps.walk import Walk

MOST_KEPT = 1000


class _OverError(Exception):
    """A look has to end before its round; the text says why."""


@dataclass
class Rows:
    """What one look saw of the rows: how many, how far the round is, which disagree (of the round), and why it ended before it."""

    examined: int = 0
    of_round: int = 0
    complete: bool = False
    held_up: str = ""
    wrong: Disagreement = field(default_factory=lambda: Disagreement(0, 0, {}, ()))


def at_work(rollout: Rollout) -> bool:
    """Whether somebody has the table now. One read; takes no lock."""
    return rollout.ledger.session.value(f"SELECT IS_USED_LOCK({VALUE})", lock_name(rollout.schema, rollout.table)) is not None


def go_on(rollout: Rollout, over: Callable[[], str]) -> Rows:
    """
    Go on with the round until its end, or until *over* says why not, a rollout takes the table or too many rows disagree.

    Takes no lock. Each chunk is paced as a pass's, gently whatever the plan says, and what disagrees is read again after a moment
    before it counts. Safe to repeat and to kill anywhere.

    Raises:
        Cancelled: the look was asked to stop; the next one goes on.
    """
    ledger, walk = rollout.ledger, _gentle(rollout.walk())
    cursor, known = _begun(walk, ledger)
    rows, pace = Rows(), Pace(WATCH, rollout.told)
    pace.begin(1, int(ledger.passes()[WATCH]["rows_examined"]), 0, catalogue.estimated_rows(walk.session, walk.keyset.schema,
                                                                                            walk.keyset.table))

    def edge() -> None:
        cancellation.edge()
        why = "a rollout works on the table" if at_work(rollout) else over()
        if why:
            raise _OverError(why + (f"; {pace.paused_for}" if pace.paused_for else ""))

    with Throttle(ledger, WATCH, walk.settings, edge=edge, heeds_stop=False) as throttle:
        try:
            _walk(walk, Brake(walk, throttle, pace), cursor, known, rows)
            rows.complete = not _stale(ledger)
            rows.held_up = "" if rows.complete else "a rollout worked on the table meanwhile"
        except (_OverError, Stopped) as ended:
            rows.held_up = ended.reason if isinstance(ended, Stopped) else str(ended)
    rows.of_round = pace.examined
    rows.wrong = exact_look.counted(walk, rows.examined, _kept(walk, ledger))
    if rows.complete:
        ledger.end_sweep(WATCH, finished=True)
        pace.ended()
    rollout.told(pace.progress())
    return rows


def _gentle(walk: Walk) -> Walk:
    """Weeks of looks are never in a hurry, whatever a backfill may do."""
    return replace(walk, settings=walk.settings.model_copy(update={"mode": "gentle", "connections": 1}))


def _begun(walk: Walk, ledger: Ledger) -> tuple[Key | None, set[str | None]]:
    """Where the round goes on, and the rows known to disagree; a new round where there is none, or where the last one proves nothing."""
    wrong = _kept(walk, ledger)
    standing = ledger.passes().get(WATCH)
    if standing is None or standing["finished_at"] or _stale(ledger):
        ledger.reset_pass(WATCH)
        ledger.start_pass(WATCH)
        _keep(ledger, wrong)
        standing = ledger.passes()[WATCH]
    return decode(standing["cursor"]), {encode(one.key) for one in wrong}


def _stale(ledger: Ledger) -> bool:
    """Whether a run began or ended since this round did: what was seen before it says nothing of the table after it."""
    began = str(ledger.passes()[WATCH]["started_at"])
    return any(str(run["started_at"]) >= began or str(run["ended_at"] or "") >= began for run in ledger.runs())


def _walk(walk: Walk, brake: Brake, cursor: Key | None, known: set[str | None], rows: Rows) -> None:
    """From *cursor* to the last row, chunk by chunk."""
    ledger, pace = brake.throttle.ledger, brake.pace
    while True:
        most = brake.before()
        began = waits.now_s()
        chunk = walk.keyset.next_stretch(walk.session, cursor, most)
        if not chunk:
            return
        condition, values = walk.keyset.between(cursor, chunk.end)
        found_s = waits.now_s()
        keys = walk.session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {walk.disagree()}", *values)
        took_s = waits.now_s() - found_s
        new = [one for one in _again(walk, keys) if encode(one.key) not in known]
        with ledger.session.transaction() if new else nullcontext():
            _keep(ledger, new)
            ledger.move_pass(ledger.session, WATCH, encode(chunk.end), chunk.rows, 0)
        known |= {encode(one.key) for one in new}
        rows.examined, cursor = rows.examined + chunk.rows, chunk.end
        pace.did(chunk.rows, 0, took_s)
        pace.told(pace.progress())
        if len(known) >= MOST_KEPT:
            raise _OverError(f"{len(known)} rows disagree, which is enough to know")
        brake.after(chunk.rows, took_s, waits.now_s() - began)


def _again(walk: Walk, keys: list[Key]) -> list[Wrong]:
    """Which of *keys* still disagree after a moment, because a row may have been caught half-way."""
    if keys:
        waits.sleep_s(SECOND_LOOK_S)
    return list(exact_look.still_wrong(walk, keys))


def _kept(walk: Walk, ledger: Ledger) -> list[Wrong]:
    """The rows that were found and disagree still; those that somebody has put right meanwhile are let go."""
    keys = quarantine.keys(ledger, WATCH)
    wrong = list(exact_look.still_wrong(walk, keys))
    if len(wrong) != len(keys):
        with ledger.session.transaction():
            quarantine.clear(ledger, WATCH)
            _keep(ledger, wrong)
    return wrong


def _keep(ledger: Ledger, wrong: list[Wrong]) -> None:
    for one in wrong:
        quarantine.put(ledger, ledger.session, WATCH, one.key, f"{', '.join(one.pairs)} disagree")
