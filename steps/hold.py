"""
One LOCK TABLES … WRITE hold for everything that needs an exclusive metadata lock, fired in a gap the server finds (F24).

A request for an exclusive metadata lock makes MySQL kill any transaction that has read the table and now wants to write it.
So the request is sent in one packet behind a guard that fails while any session holds a lock on the table, and a watchdog
ends it after a few milliseconds should somebody have slipped in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from steps import answers, holders, snapshots, waits
from steps.errors import LockTimeout, LockWaited, NoGap, StatementFailed
from steps.holders import Table
from steps.mysql import Session, Waits, quote
from steps.target import Target
from steps.watchdog import Watchdog

GUARD_FAILED = 1242
SLIP_S = 0.004
QUIET_S = 2.0  # so long a moment is looked for in which no transaction is open in the schema; then one in which nobody holds the table
MARGIN_MS = 100
PLAIN_TRIES = 8
MOST_BUILDS = 3
TELL_EVERY_S = 5.0
HOLD_SHARE_OF_WAITS = 0.3
LONGEST_IDLE_S = 10  # a hold whose client's machine is gone ends by itself; the server would wait for a day
LONGEST_PAUSE_S = 15  # between plain tries
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@dataclass(frozen=True)
class Limits:
    """
    How long clients may be stalled, and how long to look for a gap. `plain` fires without a guard (accepted, or no P_S).

    *blocked* is told the tables and the seconds waited so far while no gap comes, and answers whom it spares and why; None where
    nobody is to be ended (:mod:`steps.end_blockers`).
    """

    max_stall_ms: int
    gap_wait_s: float
    plain: bool = False
    blocked: Callable[[list[Table], float], list[str] | None] = lambda _tables, _seconds: None

    @property
    def patience_s(self) -> float:
        """How long one of our statements may stand in a metadata-lock queue."""
        return max(0.05, (self.max_stall_ms - MARGIN_MS) / 1000)

    @property
    def patience_in_hold_s(self) -> float:
        """The same for a statement inside a hold, where clients wait already."""
        return max(0.05, self.max_stall_ms * HOLD_SHARE_OF_WAITS / 1000)


class Gap:
    """
    Fires one statement at a moment when nobody holds the tables.

    A long statement (an index build, a copy) asks for the exclusive lock again at its end, and no guard can stand before that: MySQL
    then waits for every transaction on the table. We let it wait for `patience_s` and no longer, or clients would queue behind it;
    then the build is lost and rolled back by the server. So it starts at a quiet moment (:func:`alone`), *lost* is told who was in
    the way, and after three builds it is over. What has read the table and writes it in just that moment dies of 1213: one such
    moment for each build that does not fit into a hold.
    """

    def __init__(self, session: Session, watchdog: Watchdog, limits: Limits, tables: list[Table],
                 lost: Callable[[str], None] = lambda _: None) -> None:
        self.session, self.watchdog, self.limits, self.tables, self.tell_lost = session, watchdog, limits, tables, lost
        self.lost: list[str] = []
        self._spared: list[str] | None = None
        self._sees_transactions = True

    def fire(self, statement: str, *, is_long: bool = False, before_try: Callable[[], None] = lambda: None) -> float:
        """
        Send *statement* in a gap; return the seconds waited for it. *is_long* statements (index builds) are only watched
        while they wait for a lock, since they work on between.

        Raises:
            NoGap: none came within `gap_wait_s`; names the holders.
            LockWaited: fired plainly (no guard) and the table stayed held; or three builds were lost at their end.
            StatementFailed: the statement itself failed.
        """
        began = waits.now_s()
        if self.limits.plain:
            self._fire_plainly(statement, is_long=is_long, before_try=before_try)
            return waits.now_s() - began
        slips, told_s = 0, began
        while True:
            before_try()
            builds = len(self.lost)
            quiet = self._sees_transactions and waits.now_s() - began < min(QUIET_S, self.limits.gap_wait_s / 2)
            try:
                self._try_once(statement, is_long=is_long, quiet=quiet)
            except LockTimeout:
                if len(self.lost) > builds:
                    self._lost_one()
                    began = waits.now_s()
                    continue
                slips += 1
            except StatementFailed as error:
                self._looked_in_vain(error)
            else:
                return waits.now_s() - began
            waited_s = waits.now_s() - began
            if waited_s >= self.limits.gap_wait_s:
                raise NoGap(f"table {self.tables[0][1]}", f"was never free within {self.limits.gap_wait_s:g} s"
                            + "".join(f"; {line}" for line in self._holders()),
                            "nothing was changed by this step; run the same command at a quieter time, end the holder "
                            f"({self._by_tool()}), or fire plainly with --accept no-gap")
            self._spared = self.limits.blocked(self.tables, waited_s)
            if waits.now_s() - told_s >= TELL_EVERY_S:
                told_s = waits.now_s()
                log.info("waiting for a gap", table=self.tables[0][1], seconds=round(told_s - began), holders=self._holders())
            # A try that reached the lock queue may cost somebody's transaction, so those are far apart; guards cost nothing.
            waits.sleep_s(random.uniform(0.005, 0.03) if not slips else random.uniform(0.02, 0.1 * min(slips, 10)))  # noqa: S311

    def _by_tool(self) -> str:
        """What `--end-blockers` would do, or did not do and why."""
        if self._spared is None:
            return "or let the tool do it with --end-blockers"
        return "; ".join(f"--end-blockers spared {line}" for line in self._spared[:3]) or "--end-blockers found nobody to spare"

    def _holders(self) -> list[str]:
        return holders.named(self.watchdog.session, self.tables, [self.session.connection_id])

    def _lost_one(self) -> None:
        """
        Raises:
            LockWaited: as many builds were lost as may be.
        """
        self.tell_lost(self.lost[-1])
        if len(self.lost) >= MOST_BUILDS:
            raise LockWaited(f"table {self.tables[0][1]}", f"was held at the end of {MOST_BUILDS} builds, which were lost: {self.lost[-1]}",
                             f"nothing was changed by this step; end that session ({self._by_tool()}), or run the same command at a "
                             "quieter time")
        waits.sleep_s(random.uniform(1, 5))  # noqa: S311
        snapshots.wait_until_young(self.watchdog.session, min(self.limits.gap_wait_s, snapshots.LONGEST_WAIT_S))

    def _note_loss(self) -> None:
        self.lost.append("; ".join(self._holders()) or "unknown holder")

    def _looked_in_vain(self, error: StatementFailed) -> None:
        """The guard's own no is passed over; without the right to see transactions it looks at locks only."""
        if error.errno in holders.DENIED and self._sees_transactions:
            self._sees_transactions = False
        elif error.errno != GUARD_FAILED:
            raise error

    def _try_once(self, statement: str, *, is_long: bool, quiet: bool) -> None:
        number = self.session.connection_id
        self.session.packet(holders.guard(self.tables, quiet=quiet), statement, lambda: (
            self.watchdog.building(number, SLIP_S, self.limits.patience_s, self._note_loss) if is_long
            else self.watchdog.after(number, SLIP_S)))

    def _fire_plainly(self, statement: str, *, is_long: bool, before_try: Callable[[], None]) -> None:
        def attempt() -> None:
            before_try()
            with self.watchdog.while_waiting(self.session.connection_id, self.limits.patience_s):
                self.session.verbatim(statement)

        try:
            waits.retry(attempt, tries=PLAIN_TRIES if not is_long else MOST_BUILDS, first_wait_s=1, longest_wait_s=LONGEST_PAUSE_S)
        except LockTimeout as error:
            held = "; ".join(self._holders()) or "unknown holder"
            raise LockWaited(f"table {self.tables[0][1]}", f"stayed held ({error.errno}): {held}",
                             "nothing was changed by this step; end that session, or run the same command later") from None


def _wait_for_old_snapshots(watchdog: Watchdog, limits: Limits, table: str) -> None:
    old = snapshots.wait_until_young(watchdog.session, min(limits.gap_wait_s, snapshots.LONGEST_WAIT_S))
    if old:
        log.info("old snapshots are left; their transactions may get 1412 once and must be repeated", table=table, transactions=old)


def _session(target: Target, limits: Limits) -> Session:
    return Session(target, multi=True, waits=Waits(lock_wait_timeout_s=max(1, limits.max_stall_ms // 1000)))


@contextmanager
def alone(target: Target, watchdog: Watchdog, limits: Limits, tables: list[Table], related: list[Table],
          lost: Callable[[str], None]) -> Iterator[tuple[Session, Gap]]:
    """
    Yield a session and a gap for one statement that does not fit into a hold, at a moment without old transactions.

    *related* are foreign-key parents and children, which count as the table; *lost* is told who was in the way of a lost build.
    """
    with _session(target, limits) as session:
        _wait_for_old_snapshots(watchdog, limits, tables[0][1])
        yield session, Gap(session, watchdog, limits, [*tables, *related], lost)


@contextmanager
def hold(target: Target, watchdog: Watchdog, limits: Limits, tables: list[tuple[str, str]],
         related: list[tuple[str, str]], before_try: Callable[[Session], None]) -> Iterator[tuple[Session, float]]:
    """
    Yield a session that holds *tables* with LOCK TABLES … WRITE, and the seconds it waited for the gap.

    *related* are foreign-key parents and children, which MySQL locks along with the table; *before_try* asserts on the session that is to
    hold them that the table is ours, since it may have come to another server than the others. Everything inside must be short:
    every client waits. Our own statements inside are bounded by the watchdog of the caller. The locks go with the session, also when
    its connection is lost: the server is told so over the watchdog's, else it notices within seconds by itself.
    """
    names = ", ".join(f"{quote(schema)}.{quote(table)} WRITE" for schema, table in tables)
    with _session(target, limits) as session:
        session.run("SET SESSION foreign_key_checks = 1")
        gap = Gap(session, watchdog, limits, [*tables, *related])
        _wait_for_old_snapshots(watchdog, limits, tables[0][1])
        idle_s = max(LONGEST_IDLE_S + LONGEST_PAUSE_S * limits.plain, 2 * limits.max_stall_ms // 1000)
        session.run(f"SET SESSION wait_timeout = {idle_s}")
        try:
            waited_s = gap.fire(f"LOCK TABLES {names}", before_try=lambda: before_try(session))
            yield session, waited_s
        except BaseException:
            answers.ended(session, watchdog.session)
            raise
        finally:
            session.close()  # releases the locks even when the session is in an unknown state
