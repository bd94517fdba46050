"""
The tables of a plan's README, made from its plan and its contract: `python -m flows.plan_readme` writes them anew.

Text between `<!-- begin NAME -->` and `<!-- end NAME -->` is made here; everything else in the file is written by hand and kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable

from steps import contract as contracts
from steps import plan_loader
from steps.contract import Contract, Stage
from steps.contract_sections import Relation
from steps.plan import Plan

BLOCK = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
NOTHING = "–"


def render(text: str, plan: Plan, contract: Contract) -> str:
    """
    *text* with every block made anew. Safe to repeat.

    Raises:
        KeyError: a block that nobody makes.
    """
    return BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]](plan, contract)}\n{found[3]}", text)


def diagram(contract: Contract) -> str:
    """A Mermaid entity diagram of the relations: `|o` where the child may lose its parent, dots where there is no constraint."""
    lines = [f'  {r.parent} {"|o" if r.on_delete == "SET NULL" else "||"}{"--" if r.constraint else ".."}o{{ {r.child} : "{_edge(r)}"'
             for r in contract.relation]
    return "\n".join(["```mermaid", "erDiagram", *lines, "```"])


def _edge(relation: Relation) -> str:
    rule = f"on delete {relation.on_delete}" if relation.constraint else "no foreign key"
    return f"{relation.column}, {rule}" + (f", from {relation.arrives}" if relation.arrives else "")


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    names = head.split(" | ")
    lines = [f"| {head} |", "|" + "---|" * len(names)]
    return "\n".join([*lines, *("| " + " | ".join(cell or NOTHING for cell in row) + " |" for row in rows)])


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _count(_plan: Plan, contract: Contract) -> str:
    model, table = len(contract.fields(Stage.EXPANDED)), len(contract.columns(Stage.EXPANDED))
    sides = " and ".join(_code(side.column) for side in contract.old_side)
    gone = [field.name for field in contract.field if field.deletion_stage == contract.contract.cleanup_stage]
    return (f"The model has {model} fields, counted as the scalar fields of the ADR's section 2.1 (relations are not columns), and "
            f"{len(contract.fields(Stage.CLEANED))} after cleanup, which removes {_code(*gone)}.\nUntil then the table "
            f"has {table} columns on the default path, because {sides} still stand beside their new names.")


def _fields(_plan: Plan, contract: Contract) -> str:
    return _table("field and column | type | NULL | default | index | written by | old field | deleted in", (
        (_code(field.name) if field.name == field.column else f"{_code(field.name)}, column {_code(field.column)}", field.type,
         "yes" if field.nullable else "no", _code(field.default) if field.default is not None else "",
         _code(*field.indexes) if field.indexes else "", field.write_source, field.old_field, field.deletion_stage or "")
        for field in contract.field))


def _indexes(_plan: Plan, contract: Contract) -> str:
    return _table("index | columns | unique | for", ((_code(index.name), _code(*index.columns), "yes" if index.unique else "no", index.why)
                                                     for index in contract.index))


def _matrix(_plan: Plan, contract: Contract) -> str:
    return _table("who | reads | writes | sync | until", ((row.who, ", ".join(row.reads), row.writes, row.sync, row.until or "")
                                                          for row in contract.scenario))


def _states(plan: Plan, contract: Contract) -> str:
    keep = {new: olds for pair in plan.sync for new, olds in pair.keep_old.items()}
    return _table("lifecycleStatus | from status | from AiRuntimeJob | written back to status | means | begins | ends", (
        (_code(state.lifecycle), _code(state.from_status) if state.from_status else "", _code(state.from_runtime) if state.from_runtime
         else "", _code(state.to_status) if state.to_status else f"nothing; may stand beside {_code(*keep.get(state.lifecycle, ()))}",
         state.means, state.enters, state.leaves) for state in contract.state))


def _deletion(_plan: Plan, contract: Contract) -> str:
    return _table("relation | foreign key | before | on delete | on update | due | why", (
        (r.label, f"{_code(f'{r.child}.{r.column}')} to {_code(f'{r.parent}.{r.parent_column}')}" + (f", {_code(r.constraint)}"
         if r.constraint else ""), r.before, r.on_delete or "no foreign key", r.on_update or "",
         f"with {r.arrives}" if r.arrives else "at once" if r.constraint else "never", r.why) for r in contract.relation))


def _steps(plan: Plan, _contract: Contract) -> str:
    rows = [(step.name, f"`{step.ddl}.up.sql` and `.down.sql`" if step.ddl else "made from the live column's definition",
             "after the first pass (F15)" if step.after else "first") for step in plan.pre_deploy.step]
    rows += [(leaf.name, f"`{leaf.ddl}.up.sql` and `.down.sql`", f"once `{leaf.table}.{leaf.column}` exists (F9)")
             for leaf in plan.pre_deploy.leaf]
    return _table("step | statements | when", rows)


def _entities(_plan: Plan, contract: Contract) -> str:
    return diagram(contract)


BLOCKS: dict[str, Callable[[Plan, Contract], str]] = {
    "count": _count, "fields": _fields, "indexes": _indexes, "matrix": _matrix, "states": _states, "diagram": _entities,
    "deletion": _deletion, "steps": _steps,
}


def main() -> None:
    """Write the README of every shipped plan that has a contract."""
    for name in plan_loader.shipped_plans():
        plan = plan_loader.load(name)
        contract, file = contracts.load(plan), plan.folder / "README.md"
        if contract and file.is_file():
            file.write_text(render(file.read_text(encoding="utf-8"), plan, contract), encoding="utf-8")
            sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
