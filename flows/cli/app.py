"""The console script `rollout`: commands in the order of design section 4."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import typer

from flows.cli import (
    answering,
    backfill,
    check,
    demo,
    leaving,
    plan,
    ready,
    rehearse,
    report,
    rollback,
    run,
    serve,
    status,
    uninstall,
    watch,
)
from steps.cancellation import Cancelled
from steps.errors import EXIT_CODES

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Take a MySQL table and its application through a change under live traffic, and back.\n\n"
                  + "\n\n".join(f"exit {code}: {meaning}" for code, meaning in EXIT_CODES.items()))
for command in (check.check, plan.plan, rehearse.rehearse, run.run, rollback.rollback, answering.approve, answering.reject,
                answering.resume, backfill.backfill, watch.watch, status.status, report.report,
                demo.demo, serve.serve, ready.ready, uninstall.uninstall):
    app.command()(command)


def main() -> None:
    """Entry point; wrong usage exits with 2 and, where JSON was asked for, still prints one document."""
    leaving.stoppable()
    try:
        code = app(standalone_mode=False)  # returns the code of a typer.Exit instead of raising it
        _exit(code if isinstance(code, int) else 0)
    except typer.Exit as ended:
        _exit(ended.exit_code)
    except typer.Abort:
        _exit(Cancelled.exit_code)
    except KeyboardInterrupt as asked:  # where no command had begun, or its ending had
        leaving.unstoppable()
        sys.stderr.write(f"{asked if isinstance(asked, Cancelled) else Cancelled('SIGINT')}; {Cancelled.remedy}\n")
        _exit(Cancelled.exit_code)
    except typer.BadParameter as error:
        _wrong_usage(error.format_message())
    except typer.TyperException as error:
        _wrong_usage(str(error) or type(error).__name__)


def _exit(code: int) -> NoReturn:
    leaving.leaves(code)
    sys.exit(code)


def _wrong_usage(message: str) -> None:
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"outcome": EXIT_CODES[2], "error": message, "kind": "WrongUsage", "subject": "command line",
                                     "reason": message, "remedy": "see `rollout --help`", "exit_code": 2}) + "\n")
    sys.stderr.write(f"{EXIT_CODES[2]}: {message}\nsee `rollout --help`\n")
    sys.exit(2)
