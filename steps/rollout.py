"""
One rollout at work: the plan, the database, who does it and why, and the sessions it may use.

At most five connections (:data:`steps.checks.connections.MOST`) and one for each lane of a pass: worker, ledger, owner lock, watchdog,
and one more in a rehearsal or a hold (case C83).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from steps import cancellable, cancellation, catalogue, control, on_record, rehearsal, server_trouble, sync, tenure, waits
from steps.agreement import Pair
from steps.errors import Refused, StatementFailed
from steps.hold import Limits
from steps.keyset import Keyset
from steps.ladder import Ladder
from steps.ledger import Event, Ledger
from steps.mysql import Session, shown
from steps.own_names import folds, spelled
from steps.ownership import Ownership
from steps.passes import Progress, Walk
from steps.phase import Phase
from steps.plan import Plan
from steps.plan_identity import same_plan
from steps.references import named_parents
from steps.target import Target
from steps.watchdog import Watchdog

log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@dataclass(frozen=True)
class Person:
    """Who runs this and why; `deployed_by` confirms a manual deploy, `confirm` asks for a yes, or a name that says it, or is None."""

    actor: str
    reason: str
    deployed_by: str | None = None
    confirm: Callable[[str], bool | str] | None = None


@dataclass
class Rollout:
    """Everything a step may use. Made by :func:`opened`; not shared between threads."""

    plan: Plan
    target: Target
    person: Person
    accepted: frozenset[str]
    session: Session
    ledger: Ledger
    watchdog: Watchdog
    owner: Ownership | None = None
    told: Callable[[Progress], None] = lambda _: None
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    blocked: Callable[[list[tuple[str, str]], float], list[str] | None] = lambda _tables, _seconds: None
    _rehearsed: rehearsal.Rehearsed | None = None
    _later: list[tuple[float, Event]] | None = None

    @property
    def schema(self) -> str:
        return self.target.schema

    @property
    def table(self) -> str:
        return self.plan.table

    @property
    def limits(self) -> Limits:
        return Limits(self.plan.plan.max_stall_ms, self.plan.plan.gap_wait_s, "no-gap" in self.accepted, self.blocked)

    def check_owner(self, session: Session | None = None) -> None:
        """Assert before every statement that changes something that the table is still ours (case C93); an edge where a run may stop."""
        cancellation.edge()
        if self.owner:
            self.owner.check(session or self.session)

    def tables_to_lock(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """The table, with parents that a step is to reference (else 1100); and those that MySQL locks along with it by foreign keys."""
        related = catalogue.related_tables(self.session, self.schema, self.table)
        new = named_parents(self.plan, self.schema, fold=folds(self.session)) - {*related}
        return [(self.schema, self.table), *sorted(p for p in new if catalogue.exists(self.session, *p))], related

    def live(self) -> catalogue.Shape:
        """The live table's shape now; never remembered."""
        return catalogue.shape(self.session, self.schema, self.table)

    def rehearsed(self) -> rehearsal.Rehearsed:
        """The staircase climbed and descended on a clone; once per run."""
        if self._rehearsed is None:
            known = self.ledger.plan()
            began = waits.now_s()
            with Session(self.target) as live:
                self._rehearsed = rehearsal.rehearse(live, self.target, self.plan,
                                                      known["baseline_sql"] if known else None)
            self.say("rehearsed", steps=self._rehearsed.ladder.top, seconds=round(waits.now_s() - began, 2))
        return self._rehearsed

    @property
    def slowness(self) -> float:
        """How much slower than the figures behind the estimates this server was at the rehearsal; 1 when none was made."""
        return self._rehearsed.slowness if self._rehearsed else 1.0

    def ladder(self) -> Ladder:
        """The ladder as frozen at the first start, else as rehearsed now."""
        known = self.ledger.plan()
        return Ladder.from_json(known["ladder"]) if known else self.rehearsed().ladder

    def cleanup_began(self) -> bool:
        """Whether phase 6 was begun and not taken back: from then on the triggers are off on purpose."""
        return self.ledger.phase_state(Phase.CLEANUP) not in ("-", "undone")

    def position(self) -> int:
        """
        Raises:
            Drifted: the live table stands on no stair.
        """
        return self.ladder().position(self.live(), self.table)

    def pairs(self) -> tuple[Pair, ...]:
        """The pairs on the live table; both sides must be there."""
        return sync.pairs(self.session, self.plan, self.schema)

    def sync_state(self) -> sync.SyncState:
        """What stands of our triggers; OFF while a column they name is not there yet."""
        try:
            wanted = sync.sync_triggers(self.plan.id, self.pairs())
        except Refused:
            return sync.SyncState.OFF
        return sync.state(self.session, self.schema, self.table, wanted)

    def walk(self) -> Walk:
        return Walk(self.session, Keyset.of(self.session, self.schema, self.table), self.pairs(), self.plan.backfill, self.check_owner)

    def walk_without_pairs(self) -> Walk:
        """A way through the table for what has nothing to do with pairs."""
        return Walk(self.session, Keyset.of(self.session, self.schema, self.table), (), self.plan.backfill, self.check_owner)

    def say(self, what: str, **fields: Any) -> None:
        log.info(what, plan=self.plan.id, table=self.table, **fields)

    def record(self, event: Event, age_s: float = 0, *, only_known_here: bool = False) -> None:
        """Ledger first, then whoever listens (Prefect's artifacts, the terminal); *only_known_here*: :func:`steps.on_record.put`."""
        if self._later is not None:
            self._later.append((waits.now_s(), event))
            return
        self.record_now(event, age_s, only_known_here=only_known_here)

    def record_now(self, event: Event, age_s: float = 0, *, only_known_here: bool = False) -> None:
        """The same at once, for what others must find even if this tool is killed while it waits for a gap."""
        (on_record.put if only_known_here else Ledger.record)(self.ledger, event, age_s)
        extra = {"ms": round(event.duration_ms, 1)} if event.duration_ms is not None else {}
        extra |= {"rows": event.rows} if event.rows is not None else {}
        log.info(event.outcome, phase=event.phase, step=event.step, direction=event.direction, **extra)
        for listener in self.listeners:
            listener(event)

    @contextmanager
    def recorded_later(self) -> Iterator[None]:
        """Keep events back until the block has ended: inside a hold every write of ours would make every client wait."""
        self._later = []
        try:
            yield
        except BaseException:
            with suppress(StatementFailed):  # what stopped the block matters more than that it could not be written down
                self._record_kept()
            raise
        self._record_kept()

    def _record_kept(self) -> None:
        kept, self._later = self._later or [], None
        for happened_s, event in kept:
            self.record(event, waits.now_s() - happened_s)

    @contextmanager
    def timed(self, phase: Phase, step: str, *, direction: str = "forward", statement: str | None = None,
              outcome: str = "done", only_known_here: bool = False) -> Iterator[dict[str, Any]]:
        """Record a statement or step with its duration; put `rows` or details into what this yields. Errors are recorded too."""
        facts: dict[str, Any] = {}
        began = waits.now_s()
        try:
            yield facts
        except BaseException as error:
            text, how = str(error) or type(error).__name__, "failed" if isinstance(error, Exception) else "cancelled"
            with suppress(StatementFailed):  # the error itself matters more than that it could not be written down
                self.record(Event(phase.value, step, how, direction, statement, (waits.now_s() - began) * 1000,
                                  detail={"error": shown(text)[:1000]}))
            raise
        rows, what = facts.pop("rows", None), facts.pop("outcome", outcome)
        ended = Event(phase.value, step, what, direction, statement, (waits.now_s() - began) * 1000, rows, facts)
        self.record(ended, only_known_here=only_known_here)


@contextmanager
def opened(plan: Plan, target: Target, person: Person, accepted: frozenset[str] = frozenset()) -> Iterator[Rollout]:
    """A rollout that may look but does not own the table yet; closes every session at the end."""
    with Session(target) as session, Session(target, read_timeout_s=30) as for_ledger, Session(target, read_timeout_s=30) as third, \
            server_trouble.explains():
        cancellable.spared(for_ledger, third)
        target, plan = spelled(session, target, plan)
        ledger = Ledger(for_ledger, target.schema, plan.table, plan.id, plan.plan.ledger_schema)
        yield Rollout(plan, target, person, accepted, session, ledger, Watchdog(third))


@contextmanager
def owned(rollout: Rollout, verb: str, options: dict[str, Any]) -> Iterator[Rollout]:
    """
    Make the ledger, take the table, record the run from start to end.

    Raises:
        Busy: another rollout holds the table.
        WrongUsage: the plan's identity differs from the one fixed at the first run.
    """
    rollout.ledger.create()
    with Ownership(rollout.target, rollout.ledger, rollout.person.actor) as owner, tenure.watched(owner.gone):
        rollout.owner, rollout.ledger.fence = owner, owner.check
        same_plan(rollout)
        _climb_with_older_ledger(rollout)
        control.obeyed(rollout.ledger)  # a stop that came after the last run had ended is not for this one
        with rollout.ledger.run(verb, rollout.person.actor, rollout.person.reason, options), server_trouble.stops(rollout.table):
            try:
                yield rollout
            finally:
                rollout.owner, rollout.ledger.fence = None, lambda _: None


def _climb_with_older_ledger(rollout: Rollout) -> None:
    """A ladder that an older tool froze without cleanup's stairs gets them now, from the same baseline."""
    known = rollout.ledger.plan()
    if not known or not rollout.plan.removed_columns:
        return
    frozen = Ladder.from_json(known["ladder"])
    if frozen.top == frozen.expanded:
        rehearsed = rollout.rehearsed().ladder
        if [stair.shape for stair in rehearsed.stairs[:frozen.top]] == [stair.shape for stair in frozen.stairs]:
            rollout.ledger.extend_ladder(rehearsed.to_json())
