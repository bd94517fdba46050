"""
A process that runs one command and at one boundary kills itself with SIGKILL, or stops and waits for a word.

`python -m tests.faults.victim COMMAND [SERIES:NUMBER]` runs it once on ROLLOUT_DATABASE_URL and tells what it passed. Without
arguments it serves: a JSON request a line on stdin, an answer a line on stdout, each command in a child forked from this warm
process. No connection is open when it forks. A request with `pause` is answered twice: when the child has stopped at the boundary,
and, after one more line on stdin, when it has ended. Neither the child nor its pause outlasts a time limit.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pymysql
from sqlalchemy import make_url

from flows import actions
from flows.cli import leaving, performing
from flows.cli.ending import Ending
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps import rehearsal, waits
from steps.cancellation import Cancelled
from steps.errors import RolloutError
from steps.ownership import HEARTBEAT_S, Ownership
from steps.target import ENVIRONMENT, target_of
from tests.faults import impatience, in_command, patience, tool_sessions
from tests.faults.boundaries import CHUNK_ROWS, Boundaries, install

WHO = {"plan": "ai_analysis_job", "by": "tester", "reason": "killed and run again", "database": "command line"}
SETTINGS = (*in_command.SETTINGS, "cleanup.min_age_s=0", "cleanup.observe_s=0", "cleanup.cooling_s=0",
            f"backfill.first_chunk_rows={CHUNK_ROWS}", f"backfill.largest_chunk_rows={CHUNK_ROWS}", "backfill.target_ms=5000")
ACCEPTED = ("cleanup", "cleanup-unseen", "discard-added", "failover", "rename-in-place")
COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "run": ("run", {"through": Through.SHADOW_WRITE}),
    "cleanup": ("run", {"through": Through.CLEANUP}),
    "back": ("rollback", {"to": Target.V0}),
    "back-drop": ("rollback", {"to": Target.V0, "drop_added": True}),
    "back-cleanup": ("rollback", {"phase": Through.CLEANUP}),
}
LONGEST_SLEEP_S = 0.01
LIMIT_S, PAUSE_S, DUMP_S = 90, 60, 0.5
Tell = Callable[[dict[str, Any]], Any]


def carry_out(command: str, settings: list[str], *, prefect: bool = False) -> str:
    """Run *command* as its flow does, without Prefect unless asked; return its outcome."""
    verb, what = COMMANDS[command]
    kind = RunRequest if verb == "run" else RollbackRequest
    request = kind(**WHO, settings=[*SETTINGS, *settings], accept=list(ACCEPTED), **what)  # type: ignore[arg-type]
    if prefect:
        end = Ending(as_json=True)
        performing.perform(request, target_of(None), end, performing.Ask(end, quiet=True), prefect=True)
        return str(end.document["outcome"])
    with actions.desk(request, target_of(None)) as rollout:
        act: Any = actions.run if verb == "run" else actions.rollback
        return str(act(rollout, request, PlainConductor()).outcome)


def shorten_waits() -> None:
    real = waits.sleep_s
    waits.sleep_s = lambda seconds: real(min(seconds, LONGEST_SLEEP_S))


class Boundary:
    """What happens to the victim at the boundary that was asked for, and how long after that it came to the next one."""

    def __init__(self, tell: Tell, word: int | None) -> None:
        self.tell, self.word = tell, word
        self.facts: dict[str, Any] = {}
        self._on_s = 0.0

    def reached(self, name: str) -> None:
        if self.word is None:
            self.tell({"at": name})
            os.kill(os.getpid(), signal.SIGKILL)
        self.tell({"at": name, "paused": True, "pid": os.getpid(), "sessions": tool_sessions.told()})
        select.select([self.word], [], [], PAUSE_S)
        self._on_s = time.monotonic()
        self.facts |= {"at": name}

    def next_word(self) -> None:
        self.facts["next_s"] = time.monotonic() - self._on_s


def child(asked: dict[str, Any], tell: Tell, word: int | None = None) -> int:
    """What the forked process does; *tell* writes one JSON document that outlives it, *word* is where it hears that it may go on."""
    os.environ.update({ENVIRONMENT: asked["url"], **asked.get("environment", {})})
    boundary = Boundary(tell, word if asked.get("pause") else None)
    point = Boundaries(asked.get("series", "live"), asked.get("at", 0), boundary.reached, boundary.next_word,
                       name=asked.get("name", ""))
    install(point)
    in_command.install(point, asked.get("log", "/tmp/victim"))  # noqa: S108  # run by hand
    leaving.stoppable()
    if asked.get("impatient"):
        impatience.install()
    if asked.get("patient"):
        patience.install()
    Ownership.__init__.__defaults__ = (asked.get("heartbeat_s", HEARTBEAT_S),)
    tool_sessions.install()
    if remembered := asked.get("rehearsed"):
        known = pickle.loads(Path(remembered).read_bytes())  # noqa: S301  # written by the reference run
        rehearsal.rehearse = lambda *_: known
    elif remember := asked.get("remember"):
        real = rehearsal.rehearse
        rehearsal.rehearse = lambda *args: _kept(real(*args), Path(remember))
    try:
        said, code = carry_out(asked["command"], asked.get("settings", []), prefect=asked.get("prefect", False)), 0
    except Cancelled as asked_to_stop:
        said, code = f"Cancelled: {asked_to_stop}", asked_to_stop.exit_code
    except RolloutError as error:
        said, code = f"{type(error).__name__}: {error}", error.exit_code
    except BaseException as error:
        tell({"said": f"a fault in the tool: {error!r}", **boundary.facts})
        raise
    leaving.unstoppable()
    tell({"passed": point.passed, "said": said, **boundary.facts})
    return code


def _kept(found: rehearsal.Rehearsed, path: Path) -> rehearsal.Rehearsed:
    path.write_bytes(pickle.dumps(found))
    return found


def forked(asked: dict[str, Any], answer: Tell) -> None:
    """Run *asked* in a child until its end, of whatever kind, and *answer*; also when it has stopped half-way."""
    (reading, writing), (hearing, speaking) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        _die_as_the_child(asked, writing, hearing)
    os.close(writing)
    os.close(hearing)
    hung = threading.Event()
    limit = threading.Timer(asked.get("limit_s", LIMIT_S), _end, [pid, hung])
    limit.start()
    last: dict[str, Any] = {}
    with os.fdopen(reading) as pipe:
        for line in pipe:
            last = json.loads(line)
            if last.get("paused"):
                answer(last)
                with suppress(BrokenPipeError):  # killed while it waited
                    os.write(speaking, sys.stdin.readline().encode())
    os.close(speaking)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    limit.cancel()
    limit.join()
    answer({"ended": ended, **{key: value for key, value in last.items() if key != "paused"}} | ({"hung": True} if hung.is_set() else {}))


def _die_as_the_child(asked: dict[str, Any], writing: int, hearing: int) -> None:
    code = 1
    try:
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        faulthandler.register(signal.SIGUSR1, all_threads=True)  # says where it stands before its time limit kills it
        code = child(asked, lambda document: os.write(writing, json.dumps(document).encode() + b"\n"), hearing)
    except BaseException:  # noqa: BLE001  # whatever it is, the parent has to hear of it and this process has to end
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end(pid: int, hung: threading.Event) -> None:
    hung.set()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
        time.sleep(DUMP_S)
        os.kill(pid, signal.SIGKILL)


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
    while line := sys.stdin.readline():  # no iteration: a child's word may come in between
        forked(json.loads(line), lambda document: answers.write(json.dumps(document) + "\n"))


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
