"""How every command ends: one exit code, one message, and with --json one document on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from pydantic import ValidationError
from rich.console import Console

from flows import cockpit
from flows.cli import leaving
from steps.cancellation import Cancelled
from steps.errors import EXIT_CODES, FindingsRefused, GateClosed, RolloutError, WrongUsage
from steps.masking import mask, masked

FAULT = 1
PIPE_COLUMNS = 200
UNSEEN = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127)}  # a name could steer the terminal
OPTIONS = {"plan": "PLAN", "settings": "--set", "first": "--from"}  # where the option has another name than the field


class Ending:
    """Collects what a command has to say and says it once."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.document: dict[str, Any] = {}
        self.console = Console(stderr=as_json, highlight=False, soft_wrap=True, markup=False, emoji=False)  # names and SQL as they are
        if not self.console.is_terminal:
            self.console.width = PIPE_COLUMNS  # nothing is cut for whoever reads it later

    def say(self, text: str) -> None:
        """A line for a person; on stderr when stdout belongs to JSON."""
        self.console.print(mask(text).translate(UNSEEN), markup=False)

    def failed(self, error: RolloutError) -> int:
        """Say *error* and return its exit code."""
        code = error.exit_code
        self.document |= {"outcome": EXIT_CODES[code], "error": str(error), "kind": type(error).__name__, "subject": error.subject,
                          "reason": error.reason, "remedy": error.remedy}
        if isinstance(error, FindingsRefused):
            self.document["findings"] = list(error.findings)
        if isinstance(error, GateClosed):
            self.document["gate"] = error.gate
        self.say(f"{EXIT_CODES[code]} [{type(error).__name__}]\n{error}")
        return code

    def cancelled(self, asked: Cancelled) -> int:
        """Say that the command was asked to stop, and return its exit code."""
        self.document |= {"outcome": EXIT_CODES[asked.exit_code], "error": str(asked), "kind": Cancelled.__name__,
                          "subject": asked.subject, "reason": asked.reason, "remedy": asked.remedy}
        self.say(f"{asked.reason}; {asked.remedy}")
        return asked.exit_code

    def write(self, exit_code: int) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps(masked({**self.document, "exit_code": exit_code}), default=str, indent=2) + "\n")
            sys.stdout.flush()


def _wrong_words(error: ValidationError) -> WrongUsage:
    """What the request's model found, told by the option it came from."""
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else "request"
    return WrongUsage(OPTIONS.get(field, f"--{field.replace('_', '-')}"), str(first["msg"]).lower(), "correct the value")


@contextmanager
def ending(*, as_json: bool) -> Iterator[Ending]:
    """Turn whatever happens into the documented exit code. A fault in the tool prints its kind, and its trace on request."""
    cockpit.log_to(sys.stderr)  # before anything speaks: structlog's own default is stdout, which may belong to JSON
    end = Ending(as_json=as_json)
    code = 0
    try:
        try:
            yield end
        finally:
            leaving.unstoppable()
        code = int(end.document.pop("exit_code", 0))
    except RolloutError as error:
        code = end.failed(error)
    except ValidationError as error:
        code = end.failed(_wrong_words(error))
    except KeyboardInterrupt as asked:
        code = end.cancelled(asked if isinstance(asked, Cancelled) else Cancelled("SIGINT"))
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if os.environ.get("ROLLOUT_TRACE"):
            raise
        code = FAULT
        end.document |= {"outcome": EXIT_CODES[code], "error": f"{type(error).__name__}: {error}"}
        end.say(f"{EXIT_CODES[code]}: {type(error).__name__}: {error}\nset ROLLOUT_TRACE=1 for the trace")
    end.write(code)
    if code:
        raise typer.Exit(code)
