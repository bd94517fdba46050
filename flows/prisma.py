"""The contract's models as text for a schema.prisma: V1 (every field) and V2 (without what cleanup removes). Prefect-free."""

from __future__ import annotations

import re

from steps.contract import Contract, Stage
from steps.contract_sections import Field, Index, Relation

SCALARS = {"varchar": "String", "text": "String", "int": "Int", "datetime": "DateTime", "json": "Json"}
NATIVE = {"varchar": "VarChar", "text": "Text", "datetime": "DateTime"}
RULES = {"RESTRICT": "Restrict", "CASCADE": "Cascade", "SET NULL": "SetNull", "NO ACTION": "NoAction"}
Line = tuple[str, str, str]


def models(contract: Contract) -> dict[str, str]:
    """`v1` and `v2`. Every name that is not Prisma's own default is written as `map:` (F16), so that no migration renames it."""
    return {"v1": _model(contract, Stage.EXPANDED), "v2": _model(contract, Stage.CLEANED)}


def default_name(table: str, columns: tuple[str, ...], kind: str) -> str:
    """The name that Prisma gives an index (`idx`), a unique index (`key`) or a foreign key (`fkey`) by itself."""
    return "_".join((table, *columns, kind))


def _model(contract: Contract, stage: Stage) -> str:
    table, model = contract.contract.table, contract.contract.model
    uniques = {index.columns[0]: index for index in contract.index if index.unique and len(index.columns) == 1 and index.name != "PRIMARY"}
    fields = [_field(field, table, uniques.get(field.column)) for field in contract.fields(stage)]
    mine = [r for r in contract.relation if r.constraint and table in (r.child, r.parent) and not r.arrives]
    relations = [line for r in mine for line in _relation(contract, r)]
    later = [line for r in contract.relation if r.arrives for line in (
        f"  // once {r.child}.{r.column} exists ({r.arrives}): {r.many} {r.child}[], and there", f"  //   {_other_side(contract, r)}")]
    indexes = [_index(contract, index) for index in contract.index if index.name != "PRIMARY" and index not in uniques.values()]
    body = [*_aligned([*fields, *relations]), *later, "", *indexes, "", f'  @@map("{table}")']
    return "\n".join([*_heading(contract, stage, mine), f"model {model} {{", *body, "}", ""])


def _heading(contract: Contract, stage: Stage, mine: list[Relation]) -> list[str]:
    count = len(contract.fields(stage))
    beside = [side.column for side in contract.old_side]
    lines = [f"// {'V2, after' if stage is Stage.CLEANED else 'V1, until'} cleanup: {count} fields. Generated from the plan's contract."]
    if stage is not Stage.CLEANED and beside:
        lines.append(f"// On the default path the table also keeps {' and '.join(beside)} until then; V1 names neither.")
    return lines + [f"// Model {r.parent} needs: {r.many} {contract.contract.model}[]" for r in mine if r.parent != contract.contract.table]


def _field(field: Field, table: str, unique: Index | None) -> Line:
    base, argument = re.fullmatch(r"(\w+)(\(\d+\))?", field.type).groups()  # type: ignore[union-attr]
    kind = field.prisma_type or SCALARS[base] + ("?" if field.nullable else "")
    marks = ["@id"] if "PRIMARY" in field.indexes else []
    if unique:
        own = unique.name == default_name(table, unique.columns, "key")
        marks.append("@unique" if own else f'@unique(map: "{unique.name}")')
    if field.prisma_generated:
        marks.append(field.prisma_generated if field.prisma_generated.startswith("@") else f"@default({field.prisma_generated})")
    elif field.default is not None and not kind.endswith("?"):
        marks.append(f"@default({field.default if base == 'int' else chr(34) + field.default + chr(34)})")
    if field.column != field.name:
        marks.append(f'@map("{field.column}")')
    if base in NATIVE:
        marks.append(f"@db.{NATIVE[base]}{argument or ''}")
    if field.prisma_note:
        marks.append(f"// {field.prisma_note}")
    return field.name, kind, " ".join(marks)


def _relation(contract: Contract, relation: Relation) -> list[Line]:
    model, table = contract.contract.model, contract.contract.table
    lines = []
    if relation.child == table:
        optional = next(field.nullable for field in contract.field if field.column == relation.column)
        parent = model if relation.parent == table else relation.parent
        lines.append((str(relation.one), parent + ("?" if optional else ""), _at_relation(contract, relation)))
    if relation.parent == table:
        child = model if relation.child == table else relation.child
        lines.append((str(relation.many), f"{child}[]", f'@relation("{relation.relation_name}")' if relation.relation_name else ""))
    return lines


def _at_relation(contract: Contract, relation: Relation) -> str:
    field = next((f.name for f in contract.field if f.column == relation.column and relation.child == contract.contract.table),
                 relation.column)
    parts = [f'"{relation.relation_name}"'] if relation.relation_name else []
    parts += [f"fields: [{field}]", f"references: [{relation.parent_column}]", f"onDelete: {RULES[str(relation.on_delete)]}",
              f"onUpdate: {RULES[str(relation.on_update)]}"]
    if relation.constraint != default_name(relation.child, (relation.column,), "fkey"):
        parts.append(f'map: "{relation.constraint}"')
    return f"@relation({', '.join(parts)})"


def _other_side(contract: Contract, relation: Relation) -> str:
    optional = "?" if relation.on_delete == "SET NULL" else ""
    return f"{relation.one} {contract.contract.model}{optional} {_at_relation(contract, relation)}"


def _index(contract: Contract, index: Index) -> str:
    """F19: the composite unique rule is said as one, although the ADR's model says `@@index`."""
    names = {field.column: field.name for field in contract.field}
    own = default_name(contract.contract.table, index.columns, "key" if index.unique else "idx")
    named = "" if index.name == own else f', map: "{index.name}"'
    return f"  @@{'unique' if index.unique else 'index'}([{', '.join(names[column] for column in index.columns)}]{named})"


def _aligned(lines: list[Line]) -> list[str]:
    first, second = (max(len(line[at]) for line in lines) for at in (0, 1))
    return [f"  {name:<{first}} {kind:<{second}} {marks}".rstrip() for name, kind, marks in lines]
