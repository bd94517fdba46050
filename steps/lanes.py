"""
Several connections on one pass, each on key ranges of its own that the server cuts off one after the other.

A lane takes the next stretch behind everything handed out so far, and walks it chunk by chunk with a cursor of its own. The
pass's cursor in the ledger says how far stretches were handed out, each lane's how far it is in its stretch; both are committed with
what they speak of. So after kill -9 no finished chunk is done again, and the number of lanes may change between two runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import replace

from steps import cancellation, tenure, waits
from steps.chunks import Fixer, next_size, spared
from steps.errors import Unreachable
from steps.keyset import Key, Stretch, decode, encode
from steps.ledger import Ledger
from steps.mysql import VALUE, Session, Waits
from steps.pace import Pace
from steps.throttle import Throttle
from steps.walk import Walk

CHUNKS_A_STRETCH = 4
SHARE_FREE = 0.1
LEAST_FREE = 5
TELL_EVERY_S = 0.2
SHORT = Waits(innodb_lock_wait_timeout_s=1)
THIS_PASS = f"WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE} AND `pass` = {VALUE}"


def how_many(walk: Walk) -> int:
    """How many connections the pass may use: as many as asked for, but never the last ones the server has (case C83)."""
    wanted = walk.settings.lanes
    if wanted == 1:
        return 1
    most = int(walk.session.value("SELECT @@max_connections"))
    used = int(walk.session.one("SHOW GLOBAL STATUS LIKE 'Threads_connected'")[1])
    return max(1, min(wanted, 1 + most - used - max(LEAST_FREE, int(most * SHARE_FREE))))


def along(fixer: Fixer, start: Key | None, end: Key | None, pace: Pace, throttle: Throttle, *, lanes: int = 1,
          ended: Callable[[], bool] = lambda: False) -> int:
    """Fix chunk after chunk behind *start* up to *end*; returns how many rows were skipped because somebody held them."""
    walk, cursor, skipped = fixer.walk, start, 0
    settings = walk.settings
    rows = pace.chunk_rows or settings.first_chunk_rows
    while end is None or cursor != end:
        throttle.turn(pace, alone=lanes == 1)
        if ended():
            return skipped
        walk.check()
        began = waits.now_s()
        asked = throttle.most_rows(rows, lanes)
        chunk = walk.keyset.next_stretch(walk.session, cursor, asked, end)
        if chunk is None:
            if end is None and not pace.progress().ended:
                pace.ended()
                pace.told(pace.progress())
            return skipped
        done = fixer.fix(chunk)
        cursor, skipped = chunk.end, skipped + done.skipped
        took_s = waits.now_s() - began
        pace.did(chunk.rows, done.changed, took_s)
        throttle.did(pace, chunk.rows)
        if end is None and chunk.rows < asked:
            pace.ended()
        if lanes == 1:
            pace.told(pace.progress())
        rows = pace.chunk_rows = next_size(rows, done.rows_s, settings.chunk_ms, settings.largest_chunk_rows)
        throttle.rest(took_s)
    return skipped


class Lanes:
    """The lanes of one sweep. *fixer* is copied for each lane, with the lane's session and its cursor's place in the ledger."""

    def __init__(self, fixer: Fixer, throttle: Throttle, pace: Pace, cursor: Key | None, *, spare_checks: bool) -> None:
        self.fixer, self.throttle, self.pace, self.spare_checks = fixer, throttle, pace, spare_checks
        self.ledger, self.name = throttle.ledger, throttle.name
        self.cursor, self.skipped, self.count = cursor, 0, 1
        self._left = unfinished(self.ledger, self.name)
        self._last_number = max(self._left, default=0)
        self._one_at_a_time = threading.Lock()
        self._ended = threading.Event()
        self._errors: list[BaseException] = []
        self._turned_away: list[Unreachable] = []

    def finish_what_was_begun(self) -> None:
        """The stretches that lanes of a killed run had begun, one after the other, on the walk's own session."""
        while self._left:
            self._walk(self.fixer.walk, *self._left.popitem())

    def run(self, count: int) -> int:
        """
        Walk the rest of the table with *count* lanes; returns how many rows were skipped. A server that has no more connections
        for us is left with the lanes that came in.

        Raises: what the first failing lane raised, once every lane has ended at the edge of a chunk.
        """
        self.count = count
        threads = [threading.Thread(target=copy_context().run, args=(self._lane,), name=f"rollout-lane-{number}", daemon=True)
                   for number in range(count)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(TELL_EVERY_S)
                    cancellation.edge()
                    tenure.edge()
                    self.pace.told(self.pace.progress())
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()
        cancellation.edge()  # before what a lane raised, which was told the same
        if len(self._turned_away) == count:
            raise self._turned_away[0]
        if self._errors:
            raise self._errors[0]
        self.pace.ended()
        self.pace.told(self.pace.progress())
        return self.skipped

    def _lane(self) -> None:
        try:
            session = Session(self.fixer.walk.session.target, waits=SHORT)
        except Unreachable as error:  # 1040, 1226: as many lanes as there are connections (case C83)
            self._turned_away.append(error)
            return
        try:
            with session:
                walk = self.fixer.walk.on(session)
                with spared(walk) if self.spare_checks else nullcontext():
                    while not self._ended.is_set() and (begun := self._next(walk)):
                        self._walk(walk, *begun)
        except BaseException as error:  # noqa: BLE001  # raised by run(), in the thread that people look at
            self._errors.append(error)
            self._ended.set()

    def _next(self, walk: Walk) -> tuple[int, Stretch] | None:
        """The next stretch and its lane's number; on record before anybody walks it."""
        with self._one_at_a_time:
            if self._left:
                return self._left.popitem()
            stretch = walk.keyset.next_stretch(walk.session, self.cursor, CHUNKS_A_STRETCH * walk.settings.largest_chunk_rows)
            if stretch is None:
                return None
            number = self._last_number + 1
            with walk.session.transaction():
                self.ledger.move_pass(walk.session, self.name, encode(stretch.end), 0, 0)
                walk.session.run(f"INSERT INTO {self.ledger.table('lane')} VALUES ({', '.join([VALUE] * 7)}, 0, 0)", *self.ledger.key,
                                 self.name, number, encode(stretch.start), encode(stretch.end))
            self._last_number, self.cursor = number, stretch.end
            return number, stretch

    def _walk(self, walk: Walk, number: int, stretch: Stretch) -> None:
        """Walk *stretch* to its end, then let the pass have what the lane has counted."""
        this = f"{THIS_PASS} AND lane = {VALUE}"
        lane, key = self.ledger.table("lane"), (*self.ledger.key, self.name, number)

        def moved(session: Session, cursor: Key, examined: int, changed: int) -> None:
            self.ledger.fence(session)
            session.run(f"UPDATE {lane} SET `cursor` = {VALUE}, rows_examined = rows_examined + {VALUE}, "
                        f"rows_changed = rows_changed + {VALUE} {this}", encode(cursor), examined, changed, *key)

        held = along(replace(self.fixer, walk=walk, moved=moved), stretch.start, stretch.end, self.pace, self.throttle, lanes=self.count,
                     ended=self._ended.is_set)
        with self._one_at_a_time:
            self.skipped += held
            if self._ended.is_set():
                return  # perhaps half-way; the lane's row says where to go on
            with walk.session.transaction():
                self.ledger.fence(walk.session)
                examined, changed = walk.session.one(f"SELECT rows_examined, rows_changed FROM {lane} {this}", *key)
                walk.session.run(f"UPDATE {self.ledger.table('pass')} SET rows_examined = rows_examined + {VALUE}, "
                                 f"rows_changed = rows_changed + {VALUE} {THIS_PASS}", examined, changed, *key[:-1])
                walk.session.run(f"DELETE FROM {lane} {this}", *key)


def unfinished(ledger: Ledger, name: str) -> dict[int, Stretch]:
    """By lane's number, what is left of the stretches that lanes of pass *name* began and did not end."""
    return {int(number): Stretch(decode(json.loads(cursor)) if cursor else None, decode(json.loads(end)) or (), 0)
            for number, cursor, end in ledger.read(f"SELECT lane, `cursor`, `end` FROM {ledger.table('lane')} {THIS_PASS}",
                                                   *ledger.key, name)}
