"""
One chunk of a pass: its rows are fixed and its progress recorded in one transaction, or nothing of it is kept (case C61).

*Gentle* picks the rows nobody holds (FOR UPDATE SKIP LOCKED under READ COMMITTED) and updates them by key, so that it never
waits while it holds row locks (F15). *Full speed* is one UPDATE over the range; where that meets a lock of the application it
gives up within the session's lock wait timeout and the chunk goes the gentle way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from steps import catalogue, fixes, server_trouble, waits
from steps.errors import LockTimeout, StatementFailed, Stopped
from steps.keyset import Key, Stretch
from steps.mysql import Session
from steps.quoted_names import has_name
from steps.unchecked import without_foreign_key_checks
from steps.walk import Walk

WHOLE_TABLE = {1044, 1045, 1054, 1142, 1143, 1146, 1227, 1290, 1792, 1836, 3100}  # no row's fault: rights, columns, a read-only server
FEW_ROWS, MANY_TIMES = 10, 10
Moved = Callable[[Session, Key, int, int], None]
Refused = Callable[[Session, Key, StatementFailed], None]


@dataclass(frozen=True)
class Fixed:
    """
    What became of a chunk: rows changed, rows skipped because somebody held them, seconds that the statements on its rows took.

    Of those alone, since the round trips around them do not grow with the chunk: on a busy machine they take longer than any target,
    and a size that followed them would end at one row.
    """

    changed: int
    skipped: int
    rows_s: float


@dataclass(frozen=True)
class Fixer:
    """
    Fixes chunks of one walk. *moved* records how far it is, on the session and in the transaction that fixed the rows.

    *refused* is told of each row that the server will not have, once its chunk was split down to it.
    """

    walk: Walk
    moved: Moved
    refused: Refused
    keep: tuple[str, ...] = field(default=())
    one_by_one: bool = False

    def fix(self, chunk: Stretch) -> Fixed:
        """Fix the rows of *chunk*. Safe to repeat."""
        try:
            return waits.retry(lambda: self._attempt(chunk), tries=10, first_wait_s=0.05, longest_wait_s=2)
        except StatementFailed as error:
            if _of_no_row(error):
                raise
            return self._split(chunk)

    def _attempt(self, chunk: Stretch) -> Fixed:
        walk = self.walk
        condition, values = walk.keyset.between(chunk.start, chunk.end)
        if walk.settings.mode == "full_speed" and not self.one_by_one:
            try:
                return self._commit(chunk, lambda: self._update(f"{condition} AND {walk.fixable()}", values))
            except LockTimeout:
                pass  # the application is here: step aside
        began = waits.now_s()
        wanted = walk.count(condition, values)
        counted_s = waits.now_s() - began
        if wanted == 0:  # exact: no lock is taken for a chunk that has nothing to do
            self.moved(walk.session, chunk.end, chunk.rows, 0)
            return Fixed(0, 0, counted_s)
        if self.one_by_one:
            changed = self._each(walk.wanted(condition, values))
            self.moved(walk.session, chunk.end, chunk.rows, 0)
            return Fixed(changed, max(0, wanted - changed), waits.now_s() - began)
        done = self._commit(chunk, lambda: self._pick_and_update(condition, values))
        return replace(done, skipped=max(0, wanted - done.changed))

    def _commit(self, chunk: Stretch, change: Callable[[], int]) -> Fixed:
        with self.walk.session.transaction():
            began = waits.now_s()
            changed = change()
            took_s = waits.now_s() - began
            self.moved(self.walk.session, chunk.end, chunk.rows, changed)
        return Fixed(changed, 0, took_s)

    def _each(self, wanted: list[Key]) -> int:
        """Each row its own transaction, as an index on a filled column demands (F15)."""
        changed = 0
        for key in wanted:
            with self.walk.session.transaction():
                done = self._pick_and_update(*self.walk.keyset.equals(key))
                self.moved(self.walk.session, key, 0, done)
            changed += done
        return changed

    def _pick_and_update(self, condition: str, values: Key) -> int:
        """Pick the fixable rows nobody holds, then update them by key: no wait while holding row locks (F15)."""
        walk = self.walk
        picked = walk.session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {walk.fixable()} "
                                    "FOR UPDATE SKIP LOCKED", *values)
        return self._update(*walk.keyset.among(picked)) if picked else 0

    def _update(self, condition: str, values: Key) -> int:
        walk = self.walk
        changed = walk.session.run(f"{update(walk, self.keep)} WHERE {condition}", *values)
        bad = walk.session.warnings()
        if bad:
            raise StatementFailed(f"pass over {walk.keyset.table}", f"the server warned {', '.join(sorted(set(bad)))} on a chunk",
                                  "correct the columns' types", int(bad[0]))
        return changed

    def _split(self, chunk: Stretch) -> Fixed:
        """
        Halve a chunk that the server refuses until the rows at fault stand alone; those are told, all others are fixed.

        Where each row is its own transaction (F15) they stand alone from the start.
        """
        walk, began = self.walk, waits.now_s()
        wanted = walk.wanted(*walk.keyset.between(chunk.start, chunk.end))
        done = [self._halves(keys) for keys in ([[key] for key in wanted] if self.one_by_one else [wanted])]
        changed, told = (sum(counts) for counts in zip(*done, strict=True)) if done else (0, 0)
        self.moved(walk.session, chunk.end, chunk.rows, changed)
        return Fixed(changed, max(0, len(wanted) - changed - told), waits.now_s() - began)

    def _halves(self, keys: list[Key]) -> tuple[int, int]:
        """(changed, refused) among *keys*."""
        if not keys:
            return 0, 0
        try:
            def attempt() -> int:
                with self.walk.session.transaction():
                    return self._pick_and_update(*self.walk.keyset.among(keys))

            return waits.retry(attempt, tries=3, first_wait_s=0.05, longest_wait_s=1), 0
        except StatementFailed as error:
            if _of_no_row(error):
                raise
            if len(keys) == 1:
                self.refused(self.walk.session, keys[0], error)
                return 0, 1
        middle = len(keys) // 2
        first, second = self._halves(keys[:middle]), self._halves(keys[middle:])
        return first[0] + second[0], first[1] + second[1]


def update(walk: Walk, keep: tuple[str, ...]) -> str:
    """What a chunk's rows are changed by, without its WHERE."""
    return f"UPDATE {walk.keyset.name} SET {fixes.assignments(walk.fixes, list(keep))}"


def _of_no_row(error: StatementFailed) -> bool:
    """Whether *error* is no single row's fault, so that splitting a chunk would only meet it again."""
    return server_trouble.interrupted(error) or error.errno in WHOLE_TABLE


def next_size(rows: int, took_s: float, target_ms: int, largest: int) -> int:
    """
    Follow the time target, at most doubling or halving at a time.

    Not below a few rows for a moment's sake: on a busy machine two rows take as long as ten, and a pass of two-row chunks never ends.
    """
    factor = min(2.0, max(0.5, target_ms / 1000 / max(took_s, 0.001)))
    least = min(rows, FEW_ROWS) if took_s * 1000 < MANY_TIMES * target_ms else 1
    return max(least, min(largest, int(rows * factor)))


def filled_column_is_indexed(walk: Walk) -> bool:
    """Whether a column that this walk fills is in an index, or in a generated column that may be."""
    shape = catalogue.shape(walk.session, walk.keyset.schema, walk.keyset.table)
    generated = [definition for definition in shape.columns.values() if definition.partition("GENERATED ALWAYS AS ")[1]]
    return any(has_name(definition, fix.column) for fix in walk.fixes for definition in [*shape.indexes.values(), *generated])


def spared(walk: Walk) -> AbstractContextManager[None]:
    """
    Spare the server its foreign-key checks while the walk's session fills columns that no foreign key can touch.

    A column of a foreign key is indexed, on either side; without an index on a filled column there is nothing to check. MySQL 9.7
    opens the child table anew for each updated row all the same, and parses its triggers each time: measured 430 µs a row with
    them, 85 µs without (table with a foreign key to itself and sync triggers). Needs no right.
    """
    return without_foreign_key_checks(walk.session)


def refuse_too_many(table: str, count: int, limit: int) -> None:
    """
    Raises:
        Stopped: more rows were refused than anybody would look at one by one; the fault is in the plan or the table.
    """
    if count > limit:
        raise Stopped(f"table {table}", f"the server refused more than {limit} rows, one by one",
                      "see `rollout status` for their keys and errors; correct the cause, then run the same command again")
