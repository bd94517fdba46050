"""schema.prisma of each generation: V0 from the plan's baseline, V1 and V2 as `rollout plan --prisma` prints them."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from flows.demo.traffic.generations import PLAN_FOLDER, TABLE
from flows.prisma import models
from steps import contract, plan_loader

GENERATIONS = ("v0", "v1", "v2")
SCALARS = {"VARCHAR": "String", "TEXT": "String", "INT": "Int", "DATETIME": "DateTime"}
NATIVE = {"VARCHAR": "VarChar", "TEXT": "Text", "DATETIME": "DateTime"}
HEAD = """generator client {{
  provider   = "prisma-client-js"
  output     = "./client_{generation}"
  engineType = "client"
}}

datasource db {{
  provider = "mysql"
}}

model User {{
  id        String   @id @db.VarChar(191)
  email     String   @unique @db.VarChar(191)
  createdAt DateTime @default(now())
  updatedAt DateTime @updatedAt
  {relation}
}}

"""


def schemas() -> dict[str, str]:
    """Text by generation; the generator's output is a folder `client_GENERATION` beside the file."""
    frozen = contract.load(plan_loader.load("ai_analysis_job", ()))
    assert frozen, "the shipped plan has a contract"
    printed = models(frozen)
    new = {name: HEAD.format(generation=name, relation="aiJobs AiJob[]") + model for name, model in printed.items()}
    return {"v0": HEAD.format(generation="v0", relation="jobs AiAnalysisJob[]") + _baseline_model(), **new}


def _baseline_model() -> str:
    parsed = sqlglot.parse((PLAN_FOLDER / "baseline.sql").read_text(encoding="utf-8"), read="mysql")
    (table,) = (statement for statement in parsed if isinstance(statement, exp.Create) and statement.this.this.name == TABLE)
    fields = "\n".join(_field(column) for column in table.this.expressions if isinstance(column, exp.ColumnDef))
    relation = "user User @relation(fields: [userId], references: [id], onDelete: Restrict, onUpdate: Cascade)"
    return f"model {TABLE} {{\n{fields}\n  {relation}\n\n  @@index([userId])\n}}\n"


def _field(column: exp.ColumnDef) -> str:
    kind = column.args["kind"]
    base = kind.this.value
    rules = [rule.kind for rule in column.args["constraints"]]
    nullable = any(isinstance(rule, exp.NotNullColumnConstraint) and rule.args.get("allow_null") for rule in rules)
    default = next((rule.this for rule in rules if isinstance(rule, exp.DefaultColumnConstraint)), None)
    marks = ["@id @default(cuid())"] if column.name == "id" else ["@updatedAt"] if column.name == "updatedAt" else []
    if isinstance(default, exp.Literal):
        marks.append(f'@default("{default.name}")' if default.is_string else f"@default({default.name})")
    elif default is not None:
        marks.append("@default(now())")
    length = f"({kind.expressions[0].name})" if kind.expressions else ""
    marks += [f"@db.{NATIVE[base]}{length}"] if base in NATIVE else []
    return f"  {column.name} {SCALARS[base]}{'?' if nullable else ''} {' '.join(marks)}".rstrip()
