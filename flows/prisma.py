"""
The contract's models as text for a schema.prisma: V1 (every field) and V2 (without what cleanup removes). Prefect-free.

A column that stands and that the generation must not use is there with `@ignore`: no client sees it, and Prisma's own comparison of
schema and migrations finds it where it expects it, instead of writing a migration that drops it.
"""

from __future__ import annotations

import re

from steps.contract import Contract, Stage
from steps.contract_sections import Field, Index, Relation

SCALARS = {"varchar": "String", "text": "String", "int": "Int", "datetime": "DateTime", "json": "Json"}
NATIVE = {"varchar": "VarChar", "text": "Text", "datetime": "DateTime"}
RULES = {"RESTRICT": "Restrict", "CASCADE": "Cascade", "SET NULL": "SetNull", "NO ACTION": "NoAction"}
Line = tuple[str, str, str]


def models(contract: Contract, *, in_place: bool = False) -> dict[str, str]:
    """
    `v1` and `v2`, with renames *in_place* or as two columns until cleanup.

    Every name that is not Prisma's own default is written as `map:` (F16), so that no migration renames it.
    """
    return {"v1": _model(contract, Stage.RENAMED if in_place else Stage.EXPANDED), "v2": _model(contract, Stage.CLEANED)}


def between(contract: Contract, *, in_place: bool = False) -> str:
    """V2's model while cleanup has not dropped anything yet: what it will drop is still there, ignored."""
    return _model(contract, Stage.CLEANED, (Stage.RENAMED if in_place else Stage.EXPANDED))


def told_otherwise(contract: Contract, stage: Stage) -> list[Field]:
    """Fields whose model says another nullability than their column has (F10): Prisma's comparison would change the column."""
    return [field for field in contract.fields(stage) if field.prisma_type and field.prisma_type.endswith("?") is not field.nullable]


def default_name(table: str, columns: tuple[str, ...], kind: str) -> str:
    """The name that Prisma gives an index (`idx`), a unique index (`key`) or a foreign key (`fkey`) by itself."""
    return "_".join((table, *columns, kind))


def _model(contract: Contract, stage: Stage, standing: Stage | None = None) -> str:
    table, model = contract.contract.table, contract.contract.model
    uniques = {index.columns[0]: index for index in contract.index if index.unique and len(index.columns) == 1 and index.name != "PRIMARY"}
    fields = [_field(field, table, uniques.get(field.column)) for field in contract.fields(stage)]
    fields += [_ignored(column, field, table) for column, field in _unused(contract, stage, standing or stage).items()]
    mine = [r for r in contract.relation if r.constraint and table in (r.child, r.parent) and not r.arrives]
    relations = [line for r in mine for line in _relation(contract, r)]
    later = [line for r in contract.relation if r.arrives for line in (
        f"  // once {r.child}.{r.column} exists ({r.arrives}): {r.many} {r.child}[], and there", f"  //   {_other_side(contract, r)}")]
    indexes = [_index(contract, index) for index in contract.index if index.name != "PRIMARY" and index not in uniques.values()]
    mapped = ["", f'  @@map("{table}")'] if model != table else []
    body = [*_aligned([*fields, *relations]), *later, "", *indexes, *mapped]
    return "\n".join([*_heading(contract, stage, standing or stage, mine), f"model {model} {{", *body, "}", ""])


def _unused(contract: Contract, stage: Stage, standing: Stage) -> dict[str, Field]:
    """Columns that stand at *standing* and that no field of *stage* names."""
    used = {field.column for field in contract.fields(stage)}
    return {column: field for column, field in contract.columns(standing).items() if column not in used}


def _ignored(column: str, field: Field, table: str) -> Line:
    was = field.model_copy(update={"name": column, "column": column, "prisma_type": None, "prisma_note": None})
    name, kind, marks = _field(was, table, None)
    return name, kind, f"@ignore {marks}".rstrip()


def _heading(contract: Contract, stage: Stage, standing: Stage, mine: list[Relation]) -> list[str]:
    count = len(contract.fields(stage))
    beside = list(_unused(contract, stage, standing))
    version = "V2, after" if standing is Stage.CLEANED else "V2, until" if stage is Stage.CLEANED else "V1, until"
    lines = [f"// {version} cleanup: {count} fields. Generated from the plan's contract."]
    if beside:
        lines.append(f"// The table also keeps {', '.join(beside)} until then: ignored, so that no client reads or writes them and no "
                     "migration drops them.")
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
