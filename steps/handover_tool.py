"""
pt-online-schema-change as a process of ours: found, its version asked, started with its secrets in a private file, watched, ended.

It only copies. The swap is ours (:mod:`steps.handover_swap`). A small shell between us ends it when we are gone, also after
kill -9, and takes the private folder away.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path

from steps import cancellation, tenure, tls
from steps.commands import handed_on
from steps.errors import Stopped
from steps.handover_hooks import HELD, HOOKS, LOOKING, NO_GAP, Orders
from steps.masking import mask
from steps.plan import Plan
from steps.target import Target

TOOL = "pt-online-schema-change"
OLDEST = (3, 7)  # 3.2.1 fails on MySQL 8.4 and 9; 3.7.1 was measured
HOW_TO_GET = f"install Percona Toolkit 3.7 or newer, or name the tool with handover.command ({TOOL})"
PATIENCE_S = 10
LOOPBACK = "127.0.0.1"
ASIDES = ("  ", "Operation, tries", "Not dropping", "Not updating", "DROP ", "Created plugin")  # settings, and advice not for us
PARTS_OF_ROWS = re.compile(r" \[for Statement .*|(?<=entry )'.*?'(?= for )|(?<=value: )'.*?'(?= for )")
CHUNK_MS = 200
SET_VARS = "lock_wait_timeout=1,innodb_lock_wait_timeout=1,explain_format=TRADITIONAL,time_zone='+00:00'"
KEEPER = """
exec 3<&0
folder=$1; shift
"$@" </dev/null 3<&- &
tool=$!
{ cat; kill -TERM $tool && sleep 5 && kill -KILL $tool; } <&3 >/dev/null 2>&1 &
wait $tool
code=$?
rm -rf "$folder"
exit $code
"""


def why_not(plan: Plan) -> str | None:
    """Why the tool cannot be used here, or None; asks it for its version once, which takes a moment."""
    if plan.handover.use == "never":
        return 'handover.use = "never"'
    found = shutil.which(plan.handover.command)
    if not found:
        return f"{plan.handover.command} was not found; {HOW_TO_GET}"
    try:
        stated = _stated(found, Path(found).stat().st_mtime_ns)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{found} does not run ({type(error).__name__}); {HOW_TO_GET}"
    version = re.search(r"\b(\d+)\.(\d+)(\.\d+)?\b", stated)
    if not version or "online-schema-change" not in stated:
        return f"{found} does not say which version of {TOOL} it is; {HOW_TO_GET}"
    if (int(version[1]), int(version[2])) < OLDEST:
        return f"{found} is version {version[0]}, which does not work with MySQL 8.4 and 9; {HOW_TO_GET}"
    return None


@cache
def _stated(found: str, _changed_ns: int) -> str:
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=30, env=_environment()).stdout.strip()


def _environment() -> dict[str, str]:
    return handed_on("PTDEBUG")


def _option(text: str) -> str:
    """*text* as a value in a MySQL option file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def option_file(target: Target) -> str:
    """The login as the tool reads it, so that no secret is ever in an argument that `ps` shows."""
    url = target.url
    pairs = {"host": LOOPBACK if _is_localhost(target) else url.host, "port": str(url.port or 3306), "user": url.username,
             "password": str(url.password or ""), "socket": url.query.get("unix_socket")}
    return "[client]\n" + "".join(f"{key}={_option(str(value))}\n" for key, value in pairs.items() if value)


def dsn_part(target: Target) -> str:
    """
    What the tool is told of TLS, behind its DSN, since its driver takes all but one of these from nowhere else (measured with 3.7.1).

    Without it the tool speaks in clear, whatever our own sessions do.
    """
    asked = tls.asked(target.url.query)
    if asked.mode == "disabled":
        return ""
    paths = ssl.get_default_verify_paths()
    said = {"ssl_optional": "1" if asked.mode == "preferred" else None, "ssl_client_cert": asked.cert,
            "ssl_client_key": asked.key or asked.cert, "ssl_verify_server_cert": "1" if asked.mode == "verify_identity" else None}
    if asked.verifies:
        said |= {"ssl_ca_file": asked.ca or paths.cafile, "ssl_ca_path": None if asked.ca or paths.cafile else paths.capath}
    return ",s=1" + "".join(f";mysql_{name}={value}" for name, value in said.items() if value)


def _is_localhost(target: Target) -> bool:
    """MySQL's own client library takes that name for a socket file of its own choice; our driver takes it for an address."""
    return target.url.host == "localhost" and not target.url.query.get("unix_socket")


def cannot_be_told(target: Target) -> str | None:
    """Why the tool cannot be told of the URL's host and certificates, or None: paths of these stand in a list of its own."""
    asked = tls.asked(target.url.query)
    if asked.mode == "verify_identity" and _is_localhost(target):
        return "its client takes localhost for a socket file, so the name in the certificate cannot be looked at; name the server otherwise"
    paths = [path for path in (asked.ca, asked.cert, asked.key) if path and {",", ";"} & set(path)]
    return f"the path {paths[0]} holds a comma or a semicolon, between which the tool splits" if paths else None


def arguments(plan: Plan, target: Target, alter: str, new_table: str, folder: Path) -> list[str]:
    """The tool's command line: copy and keep in step, throttled; no swap, nothing dropped."""
    how = plan.handover
    wait_for_replicas = [f"--check-replica-lag=h={how.replica.replace(':', ',P=')}", "--recursion-method=none"] if how.replica else []
    return [shutil.which(how.command) or how.command, "--execute", f"--alter={alter}", f"--plugin={folder / 'hooks.pm'}",
            f"--new-table-name={new_table}", "--no-swap-tables", "--no-drop-triggers", "--no-drop-new-table", "--no-drop-old-table",
            "--alter-foreign-keys-method=none", "--force", "--no-version-check", "--charset=utf8mb4",
            f"--set-vars={SET_VARS}", f"--chunk-time={(how.chunk_ms or plan.backfill.target_ms or CHUNK_MS) / 1000:g}",
            f"--chunk-size={plan.backfill.first_chunk_rows}", f"--max-load=Threads_running={how.max_threads_running}",
            f"--critical-load=Threads_running={how.critical_threads_running}", f"--max-lag={how.max_lag_s}", *wait_for_replicas,
            "--tries=create_triggers:3:0.1,copy_rows:100:0.25", "--progress=time,5",
            f"F={folder / 'login.cnf'},D={target.schema},t={plan.table}{dsn_part(target)}"]


@contextmanager
def private_folder(target: Target) -> Iterator[Path]:
    """A folder that only we can read, with login and hooks in it; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="rollout-copy-"))
    try:
        for name, text in (("login.cnf", option_file(target)), ("hooks.pm", HOOKS)):
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy(plan: Plan, target: Target, alter: str, new_table: str, orders: Orders, told: Callable[[str], None],
         watched: Callable[[bool], AbstractContextManager[None]]) -> None:
    """
    Let the tool copy the table to *new_table* and keep both in step; *told* gets each of its lines, without secrets and rows.

    *watched(quickly)* gives a watch over the tool's session: quickly while it looks for its gap, at leisure before and
    while it holds the table. The process is ended with us, whatever ends us. What it made stays for the caller to swap or to remove.

    Raises:
        Stopped: it failed, or ran over `handover.deadline_s`; carries the end of what it said.
        Cancelled: this run was asked to stop.
    """
    with private_folder(target) as folder, _running(arguments(plan, target, alter, new_table, folder), folder, orders) as process:
        too_late = threading.Event()

        def end_late() -> None:
            too_late.set()
            _end(process)

        late = threading.Timer(plan.handover.deadline_s, end_late)
        late.daemon = True
        late.start()
        said: list[str] = []
        try:
            with ExitStack() as watches:
                for line in _lines(process):
                    tenure.edge()
                    said = [*said[-20:], line]
                    if not line.startswith(ASIDES):
                        told(line)
                    if line in (LOOKING, HELD) or line.startswith("Created plugin"):
                        watches.pop_all().close()
                        watches.enter_context(watched(line == LOOKING))
                    elif line.endswith("Created triggers OK."):
                        watches.pop_all().close()
            code = process.wait()
            cancellation.edge()  # before its end is taken for its own
        finally:
            late.cancel()
        if code or not any(line.startswith("Successfully altered") for line in said):
            raise _failure(plan, said, timed_out=too_late.is_set())


def _failure(plan: Plan, said: list[str], *, timed_out: bool) -> Stopped:
    if timed_out:
        return Stopped(TOOL, f"ran over handover.deadline_s = {plan.handover.deadline_s} and was ended", "give it longer, or less load")
    if any(NO_GAP in line for line in said):
        return Stopped(TOOL, f"found no moment within {plan.plan.gap_wait_s} s in which nobody held the table or its relatives",
                       "run the same command at a quieter time")
    tail = " / ".join(line for line in said[-6:] if line)
    return Stopped(TOOL, f"failed: {tail[-700:]}", "the table itself is as it was; remove the cause, then run the same command again")


@contextmanager
def _running(command: list[str], folder: Path, orders: Orders) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(["/bin/sh", "-c", KEEPER, "rollout-copy", str(folder), *command], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_environment() | orders.environment(),
                          errors="replace", start_new_session=True) as process:
        try:
            with cancellation.ended_by(lambda: _hang_up(process)):
                yield process
        finally:
            _end(process)


def _hang_up(process: subprocess.Popen[str]) -> None:
    """Closing its input makes the shell between us end the tool; safe to repeat."""
    if process.stdin and not process.stdin.closed:
        process.stdin.close()


def _end(process: subprocess.Popen[str]) -> None:
    _hang_up(process)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout  # noqa: S101  # PIPE was asked for
    for line in process.stdout:
        yield mask(PARTS_OF_ROWS.sub("", line.rstrip()))
