"""`status --watch`: live on a terminal, a line for each change on a pipe; it takes no lock, and ends when it is told to."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from flows.cli.status_watch import Lines, drawn
from flows.glance import Glance, Watched
from steps import waits
from steps.mysql import Session
from steps.ownership import lock_name
from steps.rollout import Rollout
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import PLAN, Call, standing
from tests.conftest import App
from tests.trails import HOSTILE

Rollouts = Callable[..., Rollout]
SOON_S = 30
ROLLOUT = Path(sys.executable).with_name("rollout")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
MOST_QUERIES = 12


class Terminal:
    """`rollout status --watch` on a terminal of its own; *text* is all that it has shown, without its colours."""

    def __init__(self, url: str, *words: str) -> None:
        self.fd, other = pty.openpty()
        self.process = subprocess.Popen([ROLLOUT, "status", PLAN, "--watch", *words], stdin=other, stdout=other, stderr=other,
                                        start_new_session=True, env={**os.environ, ENVIRONMENT: url, "TERM": "xterm", "COLUMNS": "100"})
        os.close(other)
        self.text = ""

    def until(self, said: str) -> None:
        limit = time.monotonic() + SOON_S
        while said not in self.text:
            assert time.monotonic() < limit, f"{said!r} was not shown:\n{self.text}"
            if not self._read():
                break
        assert said in self.text, self.text

    def _read(self) -> bool:
        if not select.select([self.fd], [], [], 0.2)[0]:
            return self.process.poll() is None
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # EIO: the other end is closed
            return False
        self.text += ESCAPES.sub("", more.decode("utf-8", "replace"))
        return bool(more)

    def ended(self) -> int:
        while self._read():
            pass
        return self.process.wait(SOON_S)


@contextmanager
def terminal(url: str, *words: str) -> Iterator[Terminal]:
    found = Terminal(url, *words)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait()
        os.close(found.fd)


def somebody_works(app: App, schema: str) -> App:
    """A session that has the table as a run at work has it, until it is closed."""
    app.run("SELECT GET_LOCK(%s, 0)", lock_name(schema, "AiAnalysisJob"))
    app.run("INSERT INTO _rollout_owner VALUES (DATABASE(), 'AiAnalysisJob', 'token', %s, 'bob', 'here', 1, CONNECTION_ID(), "
            "UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))", PLAN)
    return app


def at_work_on_a_pass(begun: App) -> None:
    begun.run("UPDATE _rollout_pass SET finished_at = NULL, rows_examined = 600, rows_changed = 500 WHERE `pass` = 'first'")
    begun.run("UPDATE _rollout_pace SET rows_estimated = 1000, rows_per_s = 50, paused_for = NULL WHERE `pass` = 'first'")


def test_on_a_terminal_it_shows_phases_people_passes_and_what_is_next_until_ctrl_c(begun: App, database: Target, url: str) -> None:
    at_work_on_a_pass(begun)
    other = somebody_works(App(database), database.schema)
    before = standing(begun)
    with terminal(url, "--every", "0.2") as shown:
        for said in ("1. pre_deploy", "✔ done", "· not begun", "at work: bob on here", "pass first: 600 rows seen, 500 filled",
                     "about 400 left, 50 rows/s", "sync triggers: on", "next: cleanup", "5. shadow_write: parity, done"):
            shown.until(said)
        begun.run("UPDATE _rollout_pace SET paused_for = 'paused: bob asked for it: lunch' WHERE `pass` = 'first'")
        shown.until("paused: bob asked")
        other.close()
        shown.until("is dead")
        shown.process.send_signal(signal.SIGINT)
        assert shown.ended() == 0, shown.text
    begun.run("UPDATE _rollout_pace SET paused_for = NULL WHERE `pass` = 'first'")
    assert standing(begun) == before
    assert "Traceback" not in shown.text
    assert "stopping" not in shown.text


def test_it_ends_by_itself_once_nobody_is_at_work(begun: App, database: Target, url: str) -> None:
    other = somebody_works(App(database), database.schema)
    with terminal(url, "--every", "0.2", "--until-idle") as shown:
        shown.until("at work: bob")
        assert shown.process.poll() is None
        other.close()
        assert shown.ended() == 0
    assert "is dead" in shown.text


def test_on_a_pipe_a_line_is_said_for_each_change_and_nothing_twice(begun: App, database: Target, url: str) -> None:
    other = somebody_works(App(database), database.schema)
    process = subprocess.Popen([ROLLOUT, "status", PLAN, "--watch", "--until-idle", "--every", "0.2"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env={**os.environ, ENVIRONMENT: url})
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.strip())
            if "next: " in line and not any("verify: undone" in one for one in lines):
                begun.run("UPDATE _rollout_phase SET state = 'undone' WHERE phase = 'verify'")
                for step, detail in (("a step", {"by": "nobody"}), ("gate", {"by": "eve", "why": "it is due"})):
                    begun.run("INSERT INTO _rollout_event (run_id, table_schema, table_name, plan_id, at, phase, direction, step, outcome, "
                              "detail) VALUES ('-', DATABASE(), 'AiAnalysisJob', %s, UTC_TIMESTAMP(3), 'verify', 'back', %s, 'done', %s)",
                              PLAN, step, json.dumps(detail))
            if "verify: undone" in line:
                other.close()
    finally:
        process.kill() if process.poll() is None else None
    assert process.wait(SOON_S) == 0, lines
    assert [line for line in lines if not re.match(r"\d\d:\d\d:\d\dZ ", line)] == []
    told = [line.partition(" ")[2] for line in lines]
    assert told[0].startswith("watching ")
    assert len([line for line in told if line == "4. verify: undone"]) == 1
    assert [line for line in told if line == "rollback of verify: a step, done"]
    assert [line for line in told if line == "rollback of verify: gate, done by eve: it is due"]
    assert [line for line in told if line.startswith("bob on here is dead")]
    assert len(told) == len(set(told)), told
    assert "\x1b" not in "".join(lines)


def test_a_virgin_database_can_be_watched_and_is_left_alone(here: Call, seeded: App) -> None:
    before = standing(seeded)
    answer = here("status", PLAN, "--watch", "--until-idle")

    assert answer.code == 0
    assert "nobody is at work" in answer.text
    assert f"next: pre_deploy: rollout run {PLAN}" in answer.text
    assert standing(seeded) == before


@pytest.mark.parametrize("words", [("--watch", "--json"), ("--until-idle",), ("--watch", "--every", "0"), ("--watch", "--every", "x")])
def test_words_that_do_not_go_together_are_wrong_usage(here: Call, seeded: App, words: tuple[str, ...]) -> None:
    assert here("status", PLAN, *words).code == 2


def test_a_server_that_is_not_there_is_an_error_at_once(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "mysql://u:p@127.0.0.1:9/d")

    assert call("status", PLAN, "--watch").code == 3


def test_a_connection_that_is_lost_is_made_anew(here: Call, begun: App, database: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    other, looks = somebody_works(App(database), database.schema), [0]
    real = Watched.look

    def look(self: Watched) -> Glance:
        looks[0] += 1
        if looks[0] == 2:
            begun.run(f"KILL {self.rollout.ledger.session.connection_id}")
        if looks[0] == 4:
            other.close()
        return real(self)

    monkeypatch.setattr(Watched, "look", look)
    answer = here("status", PLAN, "--watch", "--until-idle")

    assert answer.code == 0, answer.text
    assert "asked again every 2.0 s" in answer.text
    assert answer.text.count("watching ") == 2
    assert looks[0] >= 4


def test_a_look_costs_a_handful_of_reads_and_no_lock(begun: App, rollouts: Rollouts, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work_on_a_pass(begun)
    watched, asked = Watched(rollouts()), list[str]()
    watched.look()
    real = Session.query

    def query(self: Session, sql: str, *values: Any) -> Any:
        asked.append(sql)
        return real(self, sql, *values)

    monkeypatch.setattr(Session, "query", query)
    begun.run("LOCK TABLES AiAnalysisJob WRITE, _rollout_phase READ")
    now = watched.look()
    begun.run("UNLOCK TABLES")

    assert now.next.startswith("cleanup")
    assert 0 < len(asked) <= MOST_QUERIES, asked
    assert all(sql.lstrip().upper().startswith("SELECT") for sql in asked)


def test_what_costs_more_is_looked_at_when_something_changed_and_now_and_then(begun: App, rollouts: Rollouts,
                                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    watched = Watched(rollouts())
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    assert watched.look().sync == "on"
    begun.run("DROP TRIGGER rollout_ai_analysis_job_bu")
    assert watched.look().sync == "on"
    clock[0] += 31
    assert watched.look().sync != "on"
    begun.run("UPDATE _rollout_phase SET state = 'fail' WHERE phase = 'verify'")
    assert {row["phase"]: row["state"] for row in watched.look().phases}["verify"] == "fail"


def glance(**more: Any) -> Glance:
    when = datetime(2026, 11, 2, 9, 0)  # noqa: DTZ001  # the server's, which is UTC without saying so
    phases = [{"phase": phase, "state": "done", "at": "2026-10-30T07:00:00.000Z"} for phase in ("pre_deploy", "cleanup")]
    event = {"id": 1, "at": when, "phase": "verify", "direction": "back", "step": HOSTILE, "outcome": "failed", "duration_ms": 3.0,
             "row_count": 1}
    return Glance(**{"at": when, "table": HOSTILE, "plan": "p", "phases": phases, "working": {
        "alive": True, "actor": HOSTILE, "host": "h", "pid": 1, "since": "x", "heartbeat_at": "y"}, "passes": [], "events": [event],
        "sync": "on", "next": HOSTILE, "drift": HOSTILE} | more)


@pytest.mark.parametrize("width", [30, 80, 200])
def test_hostile_names_steer_no_terminal_of_any_width(width: int) -> None:
    console = Console(width=width, force_terminal=True, markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(drawn(glance()))
    text = ESCAPES.sub("", shown.get())

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "3 d 2 h" in text
    said: list[str] = []
    Lines(said.append).show(glance())
    assert "U+001B" in "".join(said)
    assert "\x1b" not in "".join(said)
