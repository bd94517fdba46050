"""A copy that blocks for too long goes to pt-online-schema-change, and the table ends as MySQL's own copy leaves it (F5, case C09)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pymysql

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RunRequest
from steps import handover
from steps.handover_names import Names, standing
from steps.target import ENVIRONMENT, Target
from tests.conftest import App
from tests.mysql.handover.stage import ROWS, WIDEN, Make, climb, everything, handed
from tests.plans import ADD_STATE, small, written


def test_the_copy_ends_byte_for_byte_where_mysqls_own_copy_ends_and_so_does_its_way_back(tmp_path: Path, tool: str, app: App,
                                                                                        make: Make) -> None:
    before = everything(app)
    native, by_tool = make(handed(tmp_path / "a", tool, blocked_s=3600)), make(handed(tmp_path / "b", tool))
    climb(native, 1)
    wanted = everything(app)
    climb(native, 0)
    assert everything(app) == before

    [group] = climb(by_tool, 1)

    assert (group.in_hold, group.moves[0].algorithm) == (False, handover.ALGORITHM)
    assert everything(app) == wanted
    assert int(wanted["job"][0].split("AUTO_INCREMENT=")[1].split()[0]) > ROWS + 2  # beyond what the rows themselves would give
    done = [event for event in by_tool.ledger.events() if event["step"] == "010_widen" and event["outcome"] == "done"][-1]
    assert (done["detail"]["algorithm"], done["row_count"]) == (handover.ALGORITHM, ROWS)

    climb(by_tool, 0)

    assert everything(app) == before


def test_no_write_is_lost_and_none_fails_while_the_tool_copies(tmp_path: Path, tool: str, app: App, empty: Target, make: Make) -> None:
    rollout = make(handed(tmp_path / "p", tool, "backfill.first_chunk_rows=100"))
    rollout.ledger.create()
    rollout.rehearsed()
    ended, failed, wrote = threading.Event(), list[str](), dict[int, str]()

    def write(number: int) -> None:
        client, count = App(empty), 0
        try:
            while not ended.is_set():
                count += 1
                key, text = 1 + (count * 7 + number * 750) % ROWS // 4 * 4 + number, f"writer {number}.{count}"
                client.run("UPDATE job SET note = %s WHERE id = %s", text, key)
                wrote[key] = text
                client.run("INSERT INTO job (ownerId, kind, note) VALUES ('o1', 'new', %s)", text)
                wrote[client.connection.insert_id()] = text
        except pymysql.err.Error as error:
            failed.append(str(error))
        client.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    climb(rollout, 1)
    ended.set()
    for writer in writers:
        writer.join()

    assert failed == []
    assert dict(app.rows("SELECT id, note FROM job WHERE note LIKE 'writer%'")) == wrote
    assert app.value("SELECT COUNT(*) FROM job") == ROWS + app.value("SELECT COUNT(*) FROM job WHERE kind = 'new'")
    assert len(wrote) > 100


SLOW = r"""#!/bin/sh
[ "$1" = --version ] && exec "{tool}" --version
{{ tr "\0" "\n" </proc/$$/cmdline; env; ls -l "$(dirname "${{3#--plugin=}}")"; }} >"{seen}"
exec "{tool}" --sleep=0.5 "$@"
"""


def slow(folder: Path, tool: str, seen: Path) -> str:
    """The tool, slowed down after every chunk; it notes its command line and its environment."""
    script = folder / "slow"
    script.write_text(SLOW.format(tool=tool, seen=seen))
    script.chmod(0o755)
    return str(script)


def killed_half_way(folder: Path, command: str, app: App, database: Target) -> None:
    """Start `rollout run` as a process of its own and kill -9 it once the tool has begun to copy."""
    folder.mkdir()
    written(folder, steps=(WIDEN, ADD_STATE), head="max_blocked_s = 0", tail="[backfill]\nfirst_chunk_rows = 100\n")
    environment = os.environ | {ENVIRONMENT: database.url.render_as_string(hide_password=False)}
    call = [sys.executable, "-c", "from flows.cli.app import main; main()", "run", str(folder), "--no-prefect", "--through", "pre_deploy",
            "--by", "t", "--reason", "r", "--set", f"handover.command={command}"]
    with subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        said = []
        for line in process.stdout:
            said.append(line)
            if "Copying approximately" in line:
                os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, "".join(said)
    assert len(app.triggers()) == 3, "".join(said)


def test_killed_in_the_middle_the_same_command_removes_what_is_left_and_continues(tmp_path: Path, tool: str, app: App, empty: Target,
                                                                                 make: Make) -> None:
    seen = tmp_path / "seen"
    killed_half_way(tmp_path / "plan", slow(tmp_path, tool, seen), app, empty)
    rows = app.rows("SELECT id, ownerId, kind, note, status, at FROM job ORDER BY id")

    plan = small(tmp_path / "plan", steps=(WIDEN, ADD_STATE), head="max_blocked_s = 0", tail="",
                 overrides=(f"handover.command={tool}",))
    again = make(plan)
    actions.run(again, RunRequest(plan=str(tmp_path / "plan"), by="t", reason="r", through="pre_deploy"), PlainConductor())

    assert app.triggers() == []
    assert standing(again.session, Names(empty.schema, "job")) == set()
    assert "`kind` varchar(64)" in app.create_table("job")
    assert "CONSTRAINT `job_ownerId_fkey`" in app.create_table("job")
    assert "CONSTRAINT `result_jobId_fkey` FOREIGN KEY (`jobId`) REFERENCES `job` (`id`) ON DELETE CASCADE" in app.create_table("result")
    assert app.rows("SELECT id, ownerId, kind, note, status, at FROM job ORDER BY id") == rows
    shown = seen.read_text()
    assert "--alter=MODIFY COLUMN" in shown
    assert "-rw------- " in shown
    assert str(empty.url.password) not in shown
    assert not Path(shown.split("--plugin=")[1].split("\n")[0]).parent.exists()
