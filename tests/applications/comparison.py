"""
What Prisma's own comparison of a schema and a MySQL table looks at, without its engine, which is a downloaded binary.

The schema is read by Prisma's parser (:func:`tests.applications.installed.datamodel`). What a field becomes on MySQL is Prisma's documented
rule and stands here as a table. As Prisma's, the comparison looks past the order of columns, triggers, and tables without a model.
"""

from __future__ import annotations

from typing import Any

from steps.catalogue import KINDS, Shape, differences
from steps.mysql import quote

COLUMNS = {"String": "varchar(191)", "Int": "int", "DateTime": "datetime(3)", "Json": "json"}
NATIVE = {"VarChar": "varchar", "Text": "text", "DateTime": "datetime"}
RULES = {"Restrict": "RESTRICT", "Cascade": "CASCADE", "SetNull": "SET NULL", "NoAction": "NO ACTION"}
BY_CLIENT = ("cuid", "uuid")
SUFFIX = {"normal": "idx", "unique": "key"}
Document = dict[str, Any]


def proposed(datamodel: Document, model: str, live: Shape) -> list[str]:
    """What Prisma would want to change about the table *live* so that it is what *model* says; empty when nothing."""
    want = expected(datamodel, model)
    judged = {kind: {*getattr(live, kind), *getattr(want, kind)} for kind in KINDS}
    return [line for line in differences(live, want, judged) if not line.startswith("column order")]


def expected(datamodel: Document, model: str) -> Shape:
    """The table that Prisma makes of *model*."""
    tables = {found["name"]: found["dbName"] or found["name"] for found in datamodel["models"]}
    fields = next(found["fields"] for found in datamodel["models"] if found["name"] == model)
    column_of = {field["name"]: field.get("dbName") or field["name"] for field in fields}
    table = tables[model]
    indexes = [_index(index, table, column_of) for index in datamodel["indexes"] if index["model"] == model]
    return Shape({column_of[field["name"]]: _column(field) for field in fields if field["kind"] == "scalar"}, dict(indexes),
                 dict(_foreign_key(field, table, tables, column_of) for field in fields if field.get("relationFromFields")), {})


def _column(field: Document) -> str:
    native, arguments = field["nativeType"] or (None, [])
    kind = NATIVE[native] + (f"({','.join(arguments)})" if arguments else "") if native else COLUMNS[field["type"]]
    default = field.get("default")
    parts = [kind, "NOT NULL" if field["isRequired"] else "NULL"]
    if isinstance(default, dict):
        if default["name"] not in BY_CLIENT:
            assert default["name"] == "now", f"no rule for {default['name']}()"
            parts.append(f"DEFAULT CURRENT_TIMESTAMP({kind[len('datetime('):-1]})")
    elif default is not None:
        parts.append(f"DEFAULT '{default}'")
    return " ".join(parts)


def _index(index: Document, table: str, column_of: dict[str, str]) -> tuple[str, str]:
    columns = [column_of[field["name"]] for field in index["fields"]]
    on = f"({', '.join(map(quote, columns))})"
    if index["type"] == "id":
        return "PRIMARY", f"PRIMARY KEY {on}"
    name = index.get("dbName") or "_".join((table, *columns, SUFFIX[index["type"]]))
    return name, f"{'UNIQUE ' if index['type'] == 'unique' else ''}INDEX {on}"


def _foreign_key(field: Document, table: str, tables: dict[str, str], column_of: dict[str, str]) -> tuple[str, str]:
    """Under Prisma's default name: a parsed schema does not tell another, and the printed models have none."""
    columns = [column_of[name] for name in field["relationFromFields"]]
    parents = ", ".join(map(quote, field["relationToFields"]))
    return "_".join((table, *columns, "fkey")), (
        f"FOREIGN KEY ({', '.join(map(quote, columns))}) REFERENCES {quote(tables[field['type']])} ({parents}) "
        f"ON DELETE {RULES[field['relationOnDelete']]} ON UPDATE {RULES[field['relationOnUpdate']]}")
