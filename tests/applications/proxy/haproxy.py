"""One HAProxy on loopback; its instances are added, drained and removed through its runtime socket, by whoever knows its folder."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deploy.mysql_server import keeper
from deploy.mysql_server.running import free_port
from tests.applications.proxy.provider import provide_haproxy

BACKEND = "application"
SOCKET, ADDRESS, LOG, CONFIG = "runtime.sock", "address", "haproxy.log", "haproxy.cfg"
START_S, WAIT_S = 20, 30
# Retries are for connections that were refused and nothing else: a request that may have been carried out is not sent twice.
# A check waits for as long as a request would: an instance whose table is locked for a moment is slow, not ill.
CONFIGURATION = """\
global
    stats socket unix@{socket} mode 600 level admin
    nbthread 1
    maxconn 200
defaults
    mode http
    timeout connect 5s
    timeout client 90s
    timeout server 90s
    retries 3
    option redispatch
frontend traffic
    bind {address}
    default_backend {backend}
backend {backend}
    balance roundrobin
    option httpchk GET /health
    timeout check 10s
"""


class ProxyFailedError(RuntimeError):
    """HAProxy did not start, refused a command, or an instance did not come to the state it was told to."""


@dataclass(frozen=True)
class Instance:
    """An instance as HAProxy sees it: its name, its *state* (`UP`, `DOWN`, `DRAIN`, `MAINT`), its check and its requests in hand."""

    name: str
    state: str
    check: str
    in_hand: int


class Proxy:
    """The HAProxy that :func:`running` started on *folder*, for this and any other process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def address(self) -> str:
        """The base URL that clients ask."""
        return f"http://{(self.folder / ADDRESS).read_text()}"

    def instances(self) -> list[Instance]:
        """All instances, drained ones and dead ones too, in no order."""
        lines = self._said(f"show stat {BACKEND} 4 -1").lstrip("# ").splitlines()
        return [Instance(row["svname"], row["status"].split()[0], row["check_status"], int(row["scur"])) for row in csv.DictReader(lines)]

    def add(self, name: str, base_url: str) -> None:
        """
        Let the instance *name* at *base_url* have its share of the requests; return when its health route said yes.

        Raises:
            ProxyFailedError: it did not within half a minute, or there is one of this name.
        """
        server = f"{BACKEND}/{name}"
        self._told(f"add server {server} {urlsplit(base_url).netloc} check inter 200ms fall 2 rise 1", "registered")
        for command in ("enable health", "enable server"):
            self._told(f"{command} {server}")
        self._wait(lambda: self._one(name).state == "UP" and self._one(name).check == "L7OK", f"{name} is not healthy")

    def drain(self, name: str) -> None:
        """
        Send *name* no further request; return when it has answered all it had in hand. Safe to repeat.

        Raises:
            ProxyFailedError: it still had some after half a minute.
        """
        self._told(f"set server {BACKEND}/{name} state drain")
        self._wait(lambda: not self._one(name).in_hand, f"{name} has not answered what it has in hand")

    def remove(self, name: str) -> None:
        """
        Forget the instance *name*, drained or not: what it has in hand then is lost.

        Raises:
            ProxyFailedError: a connection to it was still there after half a minute.
        """
        server = f"{BACKEND}/{name}"
        self._told(f"set server {server} state maint")
        self._told(f"shutdown sessions server {server}")
        self._wait(lambda: "deleted" in self._said(f"del server {server}"), f"{name} cannot be removed")

    def _one(self, name: str) -> Instance:
        found = [instance for instance in self.instances() if instance.name == name]
        if not found:
            raise ProxyFailedError(f"HAProxy knows no instance {name}")
        return found[0]

    def _told(self, command: str, expected: str = "") -> None:
        said = self._said(command).strip()
        if (expected not in said) if expected else said:
            raise ProxyFailedError(f"HAProxy on `{command}`: {said}")

    def _said(self, command: str) -> str:
        with _reachable(self.folder) as path, socket.socket(socket.AF_UNIX) as runtime:
            runtime.settimeout(WAIT_S)
            runtime.connect(path)
            runtime.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()

    @staticmethod
    def _wait(reached: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not reached():
            if time.monotonic() > deadline:
                raise ProxyFailedError(otherwise)
            time.sleep(0.02)


@contextmanager
def running(folder: Path) -> Iterator[Proxy]:
    """
    Yield an HAProxy without instances; it ends with the context, and also when this process is killed.

    Raises:
        NoProxyError: there is none on this machine, and none to be had.
        ProxyFailedError: it ended at once; the text has the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    address = f"127.0.0.1:{free_port()}"
    (folder / SOCKET).unlink(missing_ok=True)  # an earlier one's
    (folder / ADDRESS).write_text(address)
    (folder / CONFIG).write_text(CONFIGURATION.format(socket=SOCKET, address=address, backend=BACKEND))
    command = [sys.executable, "-I", "-S", keeper.__file__, "", *provide_haproxy(), "-db", "-f", CONFIG]
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
    try:
        _wait_for_socket(folder, process)
        yield Proxy(folder)
    finally:
        with suppress(BrokenPipeError):
            process.communicate(b"stop")


@contextmanager
def _reachable(folder: Path) -> Iterator[str]:
    """The runtime socket by a short path: one from the root may be longer than a socket allows."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET}"
    finally:
        os.close(opened)


def _wait_for_socket(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while not (folder / SOCKET).exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise ProxyFailedError(f"HAProxy did not start: {(folder / LOG).read_text()[-800:]}")
        time.sleep(0.02)
