"""V0's model: the table before pre_deploy, in the words in which V1's and V2's are printed, so that a diff tells only what changes."""

from __future__ import annotations

import difflib
import re

from flows import prisma
from steps.catalogue import Shape
from steps.contract import COLUMN, Contract
from steps.contract_sections import Field, Index

NAMES = re.compile(r"`((?:[^`]|``)+)`")
TYPE = re.compile(r"(\w+)(?:\(\d+\))?")


def before(contract: Contract, baseline: Shape) -> str:
    """The model of *baseline*; a column or index that the printed models have no words for is left out."""
    table = contract.contract.table
    indexes = tuple(index for name, text in baseline.indexes.items() if (index := _index(name, text)))
    fields = tuple(field for name, text in baseline.columns.items() if (field := _field(contract, name, text, indexes)))
    keys = {str(r.constraint) for r in contract.foreign_keys} & set(baseline.foreign_keys)
    head = contract.contract.model_copy(update={"model": table, "column_order": tuple(field.column for field in fields)})
    relations = tuple(r.model_copy(update={"many": "jobs" if r.parent == table else r.many}) for r in contract.foreign_keys
                      if r.constraint in keys)
    was = contract.model_copy(update={"contract": head, "field": fields, "index": indexes, "old_side": (), "relation": relations})
    text = prisma.models(was)["v1"]
    return text[text.index("model "):]


def changes(after: str, was: str) -> str:
    """What a schema.prisma that *was* so needs to become *after*, as a unified diff that looks past how columns are aligned."""
    return "\n".join(difflib.unified_diff(_lines(was), _lines(after), "schema.prisma before", "schema.prisma after", n=1, lineterm=""))


def _lines(text: str) -> list[str]:
    return [re.sub(r"(?<=\S) +", " ", line) for line in text.splitlines()]


def _field(contract: Contract, column: str, definition: str, indexes: tuple[Index, ...]) -> Field | None:
    parts = COLUMN.match(definition)
    base = TYPE.fullmatch(parts["type"]) if parts else None
    if parts is None or base is None or base[1] not in prisma.SCALARS:
        return None
    of = {side.column: side.of for side in contract.old_side}.get(column, column)
    known = next((field for field in contract.field if field.column == of), None)
    default = parts["default"]
    length = re.search(r"^varchar\((\d+)\)$", parts["type"])
    return Field(name=column, column=column, type=parts["type"], length=int(length[1]) if length else None,
                 nullable=parts["null"] == "NULL", default=default.strip("'") if default else None,
                 indexes=tuple(index.name for index in indexes if column in index.columns), write_source="", old_field="",
                 prisma_generated=known.prisma_generated if known else None)


def _index(name: str, text: str) -> Index | None:
    """None for one with parts that a contract cannot say: a prefix, an order, an expression."""
    columns = tuple(column.replace("``", "`") for column in NAMES.findall(text))
    found = Index(name=name, columns=columns, unique="UNIQUE" in text or name == "PRIMARY", why="") if columns else None
    return found if found and found.definition == text else None
