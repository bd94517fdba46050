"""How every command ends: one exit code, one message, and with --json one document on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from steps.errors import EXIT_CODES, RolloutError
from steps.masking import mask, masked

FAULT = 1


class Ending:
    """Collects what a command has to say and says it once."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.document: dict[str, Any] = {}
        self.console = Console(stderr=as_json, highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """A line for a person; on stderr when stdout belongs to JSON."""
        self.console.print(mask(text), markup=False)

    def write(self, exit_code: int) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps(masked({**self.document, "exit_code": exit_code}), default=str, indent=2) + "\n")
            sys.stdout.flush()


@contextmanager
def ending(*, as_json: bool) -> Iterator[Ending]:
    """Turn whatever happens into the documented exit code. A fault in the tool prints its kind, and its trace on request."""
    end = Ending(as_json=as_json)
    code = 0
    try:
        yield end
        code = int(end.document.pop("exit_code", 0))
    except RolloutError as error:
        code = error.exit_code
        end.document |= {"outcome": EXIT_CODES[code], "error": str(error), "kind": type(error).__name__, "subject": error.subject,
                         "reason": error.reason, "remedy": error.remedy}
        end.say(f"{EXIT_CODES[code]} [{type(error).__name__}]\n{error}")
    except KeyboardInterrupt:
        code = 4
        end.document |= {"outcome": EXIT_CODES[code], "error": "interrupted"}
        end.say("interrupted; the same command continues")
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
