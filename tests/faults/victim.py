"""
A process that runs one command and kills itself with SIGKILL at one boundary.

`python -m tests.faults.victim COMMAND [SERIES:NUMBER]` runs it once on ROLLOUT_DATABASE_URL and tells what it passed. Without
arguments it serves: a JSON request a line on stdin, an answer a line on stdout, each command in a child forked from this warm
process. No connection is open when it forks.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pymysql
from sqlalchemy import make_url

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps import rehearsal, waits
from steps.errors import RolloutError
from steps.target import ENVIRONMENT, target_of
from tests.faults.boundaries import CHUNK_ROWS, Boundaries, install

WHO = {"plan": "ai_analysis_job", "by": "tester", "reason": "killed and run again", "database": "command line"}
SETTINGS = ("deploy.command=true", "deploy.rollback_command=true", "cleanup.deploy=true", "cleanup.rollback_deploy=true",
            "shadow_write.enable_command=true", "shadow_write.disable_command=true",
            "cleanup.min_age_s=0", "cleanup.observe_s=0", "cleanup.cooling_s=0", f"backfill.first_chunk_rows={CHUNK_ROWS}",
            f"backfill.largest_chunk_rows={CHUNK_ROWS}", "backfill.target_ms=5000")
ACCEPTED = ("cleanup", "cleanup-unseen", "discard-added", "rename-in-place")
COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "run": ("run", {"through": Through.SHADOW_WRITE}),
    "cleanup": ("run", {"through": Through.CLEANUP}),
    "back": ("rollback", {"to": Target.V0}),
    "back-drop": ("rollback", {"to": Target.V0, "drop_added": True}),
    "back-cleanup": ("rollback", {"phase": Through.CLEANUP}),
}
LONGEST_SLEEP_S = 0.01


def carry_out(command: str, settings: list[str]) -> str:
    """Run *command* as its flow does, without Prefect; return its outcome."""
    verb, what = COMMANDS[command]
    kind = RunRequest if verb == "run" else RollbackRequest
    request = kind(**WHO, settings=[*SETTINGS, *settings], accept=list(ACCEPTED), **what)  # type: ignore[arg-type]
    with actions.desk(request, target_of(None)) as rollout:
        act: Any = actions.run if verb == "run" else actions.rollback
        return str(act(rollout, request, PlainConductor()).outcome)


def shorten_waits() -> None:
    real = waits.sleep_s
    waits.sleep_s = lambda seconds: real(min(seconds, LONGEST_SLEEP_S))


def child(asked: dict[str, Any], tell: Any) -> int:
    """What the forked process does; *tell* writes one JSON document that outlives it."""
    os.environ.update({ENVIRONMENT: asked["url"], **asked.get("environment", {})})
    point = Boundaries(asked.get("series", "live"), asked.get("at", 0), lambda name: tell({"at": name}))
    install(point)
    if remembered := asked.get("rehearsed"):
        known = pickle.loads(Path(remembered).read_bytes())  # noqa: S301  # written by the reference run
        rehearsal.rehearse = lambda *_: known
    elif remember := asked.get("remember"):
        real = rehearsal.rehearse
        rehearsal.rehearse = lambda *args: _kept(real(*args), Path(remember))
    try:
        said, code = carry_out(asked["command"], asked.get("settings", [])), 0
    except RolloutError as error:
        said, code = f"{type(error).__name__}: {error}", error.exit_code
    tell({"passed": point.passed, "said": said})
    return code


def _kept(found: rehearsal.Rehearsed, path: Path) -> rehearsal.Rehearsed:
    path.write_bytes(pickle.dumps(found))
    return found


def forked(asked: dict[str, Any]) -> dict[str, Any]:
    """Run *asked* in a child and wait for its end, of whatever kind."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            code = child(asked, lambda document: os.write(writing, json.dumps(document).encode() + b"\n"))
        except BaseException:  # noqa: BLE001  # whatever it is, the parent has to hear of it and this process has to end
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = pipe.read().splitlines()
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"ended": ended, **(json.loads(lines[-1]) if lines else {})}


def warm_up() -> None:
    """The system's certificates are read once, not for every connection of every child (30 ms each)."""
    made: dict[str, Any] = {}
    real = pymysql.connections.Connection._create_ssl_ctx

    def once(connection: Any, sslp: Any) -> Any:
        if repr(sslp) not in made:
            made[repr(sslp)] = real(connection, sslp)
        return made[repr(sslp)]

    pymysql.connections.Connection._create_ssl_ctx = once
    pymysql.connections.Connection(user="nobody", defer_connect=True)
    make_url("mysql+pymysql://nobody@localhost/x").get_dialect()()


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    shorten_waits()
    warm_up()
    for line in sys.stdin:
        answers.write(json.dumps(forked(json.loads(line))) + "\n")


def main() -> None:
    if len(sys.argv) == 1:
        serve()
        return
    series, _, number = (sys.argv[2] if len(sys.argv) > 2 else "live:0").partition(":")
    shorten_waits()
    sys.exit(child({"command": sys.argv[1], "url": os.environ[ENVIRONMENT], "series": series, "at": int(number)},
                   lambda document: os.write(1, json.dumps(document).encode() + b"\n")))


if __name__ == "__main__":
    main()
