"""
Reading a plan's files: regular ones of a sensible size, as UTF-8, and only where the plan's folder is, wherever a link leads.

A plan may come from somebody else than who runs it, so nothing in it may make the tool read, or wait for, what is not the plan's.
"""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import Any

from steps.errors import PlanInvalid

LARGEST_BYTES = 1_000_000
MOST_FILES = 1000


def line_with(text: str, *words: str) -> int:
    """The first line of *text* with one of *words* on it; 1 where none has it."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if any(word in line for word in words)), 1)


def read(file: Path) -> str:
    """
    The text of *file*, without a byte order mark.

    Raises:
        PlanInvalid: it is not there, no regular file (a device or a pipe would never end), too large, or not UTF-8.
    """
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise PlanInvalid(str(file), "is no regular file", "a plan is made of plain files")
        if found.st_size > LARGEST_BYTES:
            raise PlanInvalid(str(file), f"has {found.st_size} bytes; a plan's file may have {LARGEST_BYTES}", "this is not what was meant")
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanInvalid(f"{file}:{file.read_bytes()[:error.start].count(10) + 1}", f"is not UTF-8 (byte {error.start})",
                          "save it as UTF-8") from None
    except (OSError, ValueError, RuntimeError) as error:  # no such file, a NUL in its name, links in a circle
        raise PlanInvalid(str(file), f"cannot be read: {type(error).__name__}", "check the file") from None


def parsed(file: Path, text: str) -> dict[str, Any]:
    """
    Raises:
        PlanInvalid: *text* is not TOML, or has numbers or nesting beyond all measure.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        told = error if isinstance(error, tomllib.TOMLDecodeError) else f"{type(error).__name__}, a value beyond all measure"
        raise PlanInvalid(str(file), f"is not TOML: {told}", "correct the file") from None


def inside(plan: Path, name: str, what: str, line: int) -> str:
    """
    The text of *name* in the folder of *plan*, asked for on *line* of it.

    Raises:
        PlanInvalid: it lies outside, also by a link; or :func:`read` refuses it.
    """
    where, file = f"{plan}:{line}", plan.parent / name
    try:
        reached, there = file.resolve(), file.exists()
    except (OSError, ValueError, RuntimeError) as error:
        raise PlanInvalid(where, f"{what}: {name!r} cannot be looked at: {type(error).__name__}", "check the file") from None
    if not reached.is_relative_to(plan.parent.resolve()):
        raise PlanInvalid(where, f"{what}: {name} lies outside the plan's folder", "keep the plan's files inside it")
    if not there:
        raise PlanInvalid(where, f"{what} needs the file {name}, which is missing or unreadable", "add it")
    return read(file)


def matching(plan: Path, pattern: str, what: str, line: int) -> list[str]:
    """
    The files in the folder of *plan* that *pattern* means, by name.

    Raises:
        PlanInvalid: none, too many, a pattern that reaches outside or is none, or a hidden file that it does not name.
    """
    where, shown = f"{plan}:{line}", f"{what} {pattern!r}"
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise PlanInvalid(where, f"{shown} reaches outside the plan's folder", "keep files inside")
    try:
        found = []
        for match in plan.parent.glob(pattern):
            found.append(str(match.relative_to(plan.parent)))
            if len(found) > MOST_FILES:
                raise PlanInvalid(where, f"{shown} matches more than {MOST_FILES} files", "write a narrower pattern")
    except (OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise PlanInvalid(where, f"{shown} is no pattern: {error}", "write one such as verify/*.sql") from None
    hidden = [name for name in sorted(found) if _hidden(name) and not _hidden(pattern)]
    if hidden:
        raise PlanInvalid(where, f"{shown} matches the hidden file {hidden[0]}, which an editor or an archive may have left",
                          "remove it, or name the files that are meant")
    if not found:
        raise PlanInvalid(where, f"{shown} matches no file", "correct the pattern or add the file")
    return sorted(found)


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts)
