"""
The staircase on a clone: every step up, every step down, each landing exactly one stair lower (design section 2).

The clone has the real names in a scratch schema (:mod:`steps.scratch`), so plan SQL runs there to the letter, with stand-ins for
its relatives, its own triggers, and, before the first start, a sample of its rows: these go through triggers, first pass and
smoke queries, up to cleanup's end and all the way back, and have to come back as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from steps import canary, catalogue, foreign_triggers, holders, rungs, sample, smoke, stubs, sync, waits
from steps.agreement import Pair
from steps.asking import Learned, best_way
from steps.baseline import baseline_of
from steps.catalogue import Shape, differences
from steps.clone import Clone
from steps.errors import CanaryFailed, LockTimeout, LockWaited, Refused
from steps.ladder import Ladder, Stair, Way
from steps.mysql import Session, quote
from steps.phase import Phase
from steps.plan import Plan
from steps.sample import Sample
from steps.scratch import scratch
from steps.target import Target

NOMINAL_MS = 60.0  # a stair's tries, looks and share of the canary on the machine that the estimates come from
UP, DOWN = "up", "down"
Ways = dict[tuple[str, str], Learned]


@dataclass(frozen=True)
class Rehearsed:
    """
    What the rehearsal learned: the ladder, the pairs, their triggers, and that all of it works up and down.

    *learned* has the server's answers by (step, `up` or `down`); *sample* what became of real rows, None where none were taken.
    """

    ladder: Ladder
    pairs: tuple[Pair, ...]
    triggers: tuple[sync.SyncTrigger, sync.SyncTrigger]
    baseline_sql: str
    slowness: float = 1.0
    notes: tuple[str, ...] = ()
    learned: Ways = field(default_factory=dict)
    sample: Sample | None = None


def rehearse(live: Session, target: Target, plan: Plan, baseline_sql: str | None = None) -> Rehearsed:
    """
    Climb and descend the staircase on a clone of *baseline_sql*, else of the live table.

    A live table that is already part of the way up and has no ledger is walked down on the clone first. Of live tables only
    definitions are read, and `rehearsal.sample_rows` rows without locks; whoever holds one is waited for 2 s at most.

    Raises:
        Refused: a step cannot go up or down, or somebody holds the table; names the step, the server's reason, and that nothing was
            touched.
    """
    with scratch(target, plan) as session, _named_holder(live, target, plan):
        clone = Clone(session, plan, target.schema)
        create_sql = baseline_sql or catalogue.create_statement(live, target.schema, plan.table)
        stubs.parents(live, clone, create_sql)
        if baseline_sql:
            clone.send(baseline_sql)
        baseline = baseline_sql or baseline_of(clone, create_sql)
        taken = sample.take(live, clone, plan.rehearsal.sample_rows) if baseline_sql is None and plan.rehearsal.sample_rows else None
        stubs.children(live, clone)
        foreign_triggers.clone_all(live, clone)
        return _Climb(clone, taken, baseline).up_and_down()


@contextmanager
def _named_holder(live: Session, target: Target, plan: Plan) -> Iterator[None]:
    """Whoever holds the table longer than we wait is named."""
    try:
        yield
    except LockTimeout as error:
        found = "; ".join(holders.named(live, [(target.schema, plan.table), *catalogue.related_tables(live, target.schema, plan.table)]))
        raise Refused(f"rehearsal of {plan.table}", f"could not look at a live table in time: {found or error.reason}",
                      "end that session or let it finish, then run the same command again, or go without a sample by "
                      "--set rehearsal.sample_rows=0; nothing was touched") from None


class _Climb:
    """One way up to the top and back to the bottom."""

    def __init__(self, clone: Clone, taken: Sample | None, baseline_sql: str) -> None:
        self.clone, self.sample, self.baseline_sql = clone, taken, baseline_sql
        self.learned: Ways = {}
        self.spent_s = 0.0
        self.defaults = [clone.defaults()]
        self.ladder = Ladder(clone.shape(), ())

    def up_and_down(self) -> Rehearsed:
        clone, wanted = self.clone, rungs.rungs(self.clone.plan)
        expand = [rung for rung in wanted if rung.phase is Phase.PRE_DEPLOY]
        self._climb([rung for rung in expand if not rung.after_first_pass])
        self._carried_defaults()
        pairs = sync.pairs(clone.session, clone.plan, clone.schema)
        triggers = sync.sync_triggers(clone.plan.id, pairs)
        with self._synced(pairs, triggers):
            clone.foreign_triggers_acted = bool(clone.foreign_triggers)
            if self.sample and pairs:
                sample.first_pass(clone, self.sample, pairs)
            self._climb([rung for rung in expand if rung.after_first_pass])
            if self.sample:
                self.sample.queries_run = smoke.ask(clone)
        self._climb([rung for rung in wanted if rung.phase is Phase.CLEANUP])
        slowness = self.spent_s * 1000 / max(1.0, NOMINAL_MS * len(self.ladder.stairs))
        self._descend(pairs)
        if self.sample:
            sample.compare(clone, self.sample, pairs, sample.changed_by(
                [("baseline", self.ladder.baseline), *((stair.name, stair.shape) for stair in self.ladder.stairs)]))
        return Rehearsed(self.ladder, pairs, triggers, self.baseline_sql, min(10.0, max(1.0, slowness)), tuple(clone.notes),
                         self.learned, self.sample)

    def _sing(self, pairs: tuple[Pair, ...]) -> tuple[str, ...]:
        """The canary; where the table's own triggers will not have its rows, without them, and the live canary decides (`canary`)."""
        clone = self.clone
        try:
            return canary.sing(clone.session, clone.table, clone.schema, pairs)
        except (Refused, LockWaited) as unseen:
            if not clone.foreign_triggers:
                raise
            foreign_triggers.remove(clone, unseen.reason)
            return canary.sing(clone.session, clone.table, clone.schema, pairs)

    def _carried_defaults(self) -> None:
        """A column that stands beside its old name has been given its definition as information_schema tells it."""
        for rename in self.clone.plan.dual_renames:
            if self.defaults[-1].get(rename.old) != self.defaults[-1].get(rename.new):
                raise Refused(f"rename of {rename.old}", "its default holds characters that information_schema does not tell, so the new "
                              "column would get another one", "give the column another default, or add the new one by a step and [[sync]]")

    def _climb(self, wanted: list[rungs.Rung]) -> None:
        """The *wanted* rungs on top, each with the shape it leads to; rungs with nothing to do are left out."""
        clone, stairs = self.clone, list(self.ladder.stairs)
        below = self.ladder.shape_at(self.ladder.top)
        for rung in wanted:
            sql = rung.up(below)
            if not sql:
                continue
            began = waits.now_s()
            up, self.learned[rung.name, UP] = best_way(clone, rung.name, sql, adds_fk="FOREIGN KEY" in sql.upper())
            now = clone.shape()
            self.spent_s += waits.now_s() - began
            if now == below:
                raise Refused(f"step {rung.name}", "changes nothing on this table", "remove the step; the table already has its effect")
            stairs.append(Stair(rung.name, up, Way(rung.down(below), "INSTANT"), now, rung.phase.value, rung.after_first_pass))
            self.defaults.append(clone.defaults())
            if rung.phase is Phase.CLEANUP:
                foreign_triggers.set_aside_broken(clone, rung.name)
            else:
                foreign_triggers.refuse_broken(clone, rung.name)
            below = now
        self.ladder = Ladder(self.ladder.baseline, tuple(stairs))

    def _descend(self, pairs: tuple[Pair, ...]) -> None:
        """Every way down, proven to land exactly one stair lower; the ladder keeps what was learned of them."""
        clone, stairs = self.clone, list(self.ladder.stairs)
        for position in range(self.ladder.top, 0, -1):
            if self.sample and position == self.ladder.expanded:
                sample.come_back(clone, self.sample, pairs, clone.plan.removed_columns)
            stair, want = stairs[position - 1], self.ladder.shape_at(position - 1)
            before = _lost_indexes(clone.plan, stair, want)
            for statement in before:
                clone.session.verbatim(statement)
            down, self.learned[stair.name, DOWN] = best_way(clone, f"{stair.name} (way back)", stair.down.sql, adds_fk=False)
            have = clone.shape()
            everything = {kind: set(getattr(have, kind)) | set(getattr(want, kind)) for kind in catalogue.KINDS}
            wrong = differences(have, want, everything) or _other_defaults(clone.defaults(), self.defaults[position - 1])
            if wrong:
                raise Refused(f"step {stair.name}", f"its way back does not land one stair lower: {'; '.join(wrong)}",
                              "correct the .down.sql; nothing was touched")
            stairs[position - 1] = replace(stair, down=replace(down, before=before))
        self.ladder = Ladder(self.ladder.baseline, tuple(stairs))

    @contextmanager
    def _synced(self, pairs: tuple[Pair, ...], triggers: tuple[sync.SyncTrigger, sync.SyncTrigger]) -> Iterator[None]:
        """Create the triggers on the clone behind the table's own, let the canary write as each generation; at the end drop them."""
        session, clone = self.clone.session, self.clone
        if not pairs:
            yield
            return
        began = waits.now_s()
        for trigger in triggers:
            follows = sync.last_foreign_trigger(session, clone.schema, clone.table, trigger)
            session.verbatim(trigger.create(clone.table, "CURRENT_USER", follows))
        if sync.state(session, clone.schema, clone.table, triggers) is not sync.SyncState.ON:
            raise Refused("sync triggers", "read back from the server as another text than was sent, so they could never be compared",
                          "rename columns whose names hold backticks, or leave them out of the plan's pairs")
        try:
            clone.notes += self._sing(pairs)
        except CanaryFailed as error:
            raise Refused(error.subject, f"{error.reason} (on the clone)", "another trigger interferes, or the plan's maps are wrong; "
                          "nothing was touched") from None
        self.spent_s += waits.now_s() - began
        yield
        for trigger in reversed(triggers):
            session.verbatim(trigger.drop())


def _lost_indexes(plan: Plan, stair: Stair, want: Shape) -> tuple[str, ...]:
    """Statements that put back indexes MySQL made for a foreign key and dropped when the step up brought a better one."""
    if stair.phase != Phase.PRE_DEPLOY.value:
        return ()
    return tuple(f"ALTER TABLE {quote(plan.table)} ADD {want.indexes[name].replace('INDEX', 'INDEX ' + quote(name), 1)}, "
                 "ALGORITHM=INPLACE, LOCK=NONE" for name in want.indexes if name not in stair.shape.indexes)


def _other_defaults(have: dict[str, str], want: dict[str, str]) -> list[str]:
    """Columns whose constant default information_schema shows alike and SHOW CREATE TABLE does not."""
    return [f"column {name}: its default comes back as another text" for name in sorted(have.keys() & want.keys())
            if have[name] != want[name]]
