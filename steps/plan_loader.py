"""From a name, folder or file to a validated plan, with file and line in every complaint."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from steps import masking, plan_files, sql_text
from steps.errors import PlanInvalid, WrongUsage
from steps.plan import Plan
from steps.plan_gates import Gates

SHIPPED = Path(__file__).resolve().parent.parent / "sql"
LOADED_KEYS = {"folder", "given", "sql_text", "queries"}


def shipped_plans() -> list[str]:
    """Names of the plans that come with the tool."""
    return sorted(path.parent.name for path in SHIPPED.glob("*/plan.toml"))


def load(name: str, overrides: Sequence[str] = ()) -> Plan:
    """
    The plan *name* means: a plan file, a folder with a `plan.toml`, or a shipped plan's name; *overrides* are `KEY=VALUE`.

    Raises:
        WrongUsage: there is no such plan, or an override is malformed or unknown.
        PlanInvalid: the text is wrong; names file and line.
    """
    path = _find(name)
    text = plan_files.inside(path, path.name, "the plan", 1)
    data = plan_files.parsed(path, text)
    for override in overrides:
        _override(data, override)
    if LOADED_KEYS & set(data):
        raise PlanInvalid(f"{path}:{_line(text, (min(LOADED_KEYS & set(data)),))}", "unknown key", "remove it")
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        raise _complaint(path, text, error, overrides) from None
    _refuse_looser_gates(plan, text, path, overrides)
    masking.keep_back(*plan.backfill.replicas)
    return plan.model_copy(update={"folder": path.parent, "given": name, "sql_text": _step_sql(plan, path, text),
                                   "queries": _queries(plan, path, text)})


def _refuse_looser_gates(plan: Plan, text: str, path: Path, overrides: Sequence[str]) -> None:
    """
    Raises:
        WrongUsage: an override asks less of anybody than the gates in the plan's file.
    """
    if not any(override.startswith("gates.") for override in overrides):
        return
    loosened = Gates.model_validate(plan_files.parsed(path, text).get("gates", {})).loosened_by(plan.gates)
    if loosened:
        raise WrongUsage(f"--set gates.{loosened[0]}", "asks less than the gates in the plan's file", "let somebody approve, or change the "
                         "file where everybody sees it")


def _find(name: str) -> Path:
    for path in (Path(name), Path(name) / "plan.toml"):
        try:
            if path.is_file():
                # A file is named by whoever runs it, wherever it leads; what lies in a folder may be somebody else's link out of it.
                return path.resolve() if path == Path(name) else path.parent.resolve() / path.name
        except OSError as error:
            raise WrongUsage(f"PLAN {name[:200]}", f"cannot be looked at: {error.strerror or type(error).__name__}",
                             "check the path and its rights") from None
    if name in shipped_plans():
        return SHIPPED / name / "plan.toml"
    raise WrongUsage(f"PLAN {name}", "is no plan file, no folder with a plan.toml and no shipped plan",
                     f"shipped plans: {', '.join(shipped_plans())}")


def _override(data: dict[str, Any], override: str) -> None:
    """Apply one `--set KEY=VALUE`: dotted keys, keys of `[plan]` bare; the value as TOML, else as plain text."""
    key, found, raw = override.partition("=")
    if not found or not key.strip():
        raise WrongUsage(f"--set {override}", "is not KEY=VALUE", "write --set deploy.command='…'")
    *tables, last = key.strip().split(".")
    node = data
    for table in tables or ["plan"]:
        child = node.setdefault(table, {})
        if not isinstance(child, dict):
            raise WrongUsage(f"--set {key}", f"{table} is a list or a value", "set single values by dotted key")
        node = child
    try:
        node[last] = tomllib.loads(f"value = {raw}")["value"]
    except (ValueError, RecursionError):
        node[last] = raw
    if isinstance(node[last], bool) and last.endswith(("command", "deploy")):
        node[last] = raw


def _complaint(path: Path, text: str, error: ValidationError, overrides: Sequence[str]) -> PlanInvalid | WrongUsage:
    """All of pydantic's findings in one message; the first one gives the line."""
    findings, first_line = [], 0
    for detail in error.errors():
        where = tuple(part for part in detail["loc"] if part not in ("function-before", "function-after"))
        line = _line(text, where)
        first_line = first_line or line
        reason = "unknown key" if detail["type"] == "extra_forbidden" else detail["msg"].removeprefix("Value error, ")
        findings.append(f"{'.'.join(map(str, where))} (line {line}): {reason}")
        dotted = ".".join(str(part) for part in where)
        for override in overrides:
            key = override.partition("=")[0].strip()
            if key in (dotted, dotted.removeprefix("plan.")):
                return WrongUsage(f"--set {key}", reason, "correct the value")
    return PlanInvalid(f"{path}:{first_line}", "; ".join(findings), "correct the plan")


def _line(text: str, where: tuple[int | str, ...]) -> int:
    """The line on which the key path *where* stands, as near as the text tells; 1 when it is missing altogether."""
    lines = text.splitlines()
    names = [str(part) for part in where if isinstance(part, str)]
    nth = next((part for part in where if isinstance(part, int)), 0)
    headers: list[int] = []
    for depth in range(len(names), 0, -1):  # the innermost table that has a heading of its own
        table = ".".join(names[:depth])
        ends = ("]", ".") if depth > 1 else ("",)
        headers = [i for i, line in enumerate(lines) if line.strip().startswith(tuple(f"{begin}{table}{end}" for begin in ("[", "[[")
                                                                                      for end in ends))]
        if headers:
            break
    start = headers[min(nth, len(headers) - 1)] if headers else 0
    end = next((i for i in range(start + 1, len(lines)) if headers and lines[i].strip().startswith("[")), len(lines))
    for key in reversed(names):  # one inside an inline table has no line of its own
        for i in range(start, end):
            if lines[i].strip().partition("=")[0].strip() == key:
                return i + 1
    return start + 1


def _step_sql(plan: Plan, path: Path, text: str) -> dict[str, str]:
    """Every up and down file of the plan, checked: one ALTER TABLE, no ALGORITHM or LOCK, inside the plan's folder."""
    found: dict[str, str] = {}
    files = [(step.ddl, plan.table) for step in plan.pre_deploy.step if step.ddl]
    files += [(leaf.ddl, leaf.table) for leaf in plan.pre_deploy.leaf]
    for stem, table in files:
        for direction in ("up", "down"):
            name = f"{stem}.{direction}.sql"
            sql = plan_files.inside(path, name, f"step {stem}", plan_files.line_with(text, f'"{stem}"', f"'{stem}'"))
            found[name] = sql_text.alter_statement(path.parent / name, sql, table)
    return found


def _queries(plan: Plan, path: Path, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern in plan.verify.queries:
        line = plan_files.line_with(text, f'"{pattern}"', f"'{pattern}'")
        for name in plan_files.matching(path, pattern, "verify.queries", line):
            found[name] = plan_files.inside(path, name, "verify.queries", line)
            sql_text.query_statement(path.parent / name, found[name])
    return found
