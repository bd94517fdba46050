"""
A TCP proxy between the tool and MySQL that harms connections when it is told to: loopback only, gone with its context.

Bytes pass untouched, TLS and all, so the tool sees the server's own greeting. A connection is known by its client's port. Once *armed* it
lets the next request through to the server and keeps the answer from the client, in one of these ways:

- `cut`: both ends are closed at once; the server goes on with the statement and notices at its end.
- `half`: the client's end is closed, the server's stays open: it thinks that the client is there and keeps all that it holds.
- `silent`: both ends stay open and nothing passes any more, as when a firewall forgets a connection.

Other processes speak to it over a second port, one line a command (:func:`ask`).
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import suppress
from typing import Any, Self

from sqlalchemy import make_url

BUFFER = 65_536
ANSWER_S = 10
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends an RST
HARMS = ("cut", "half", "silent")


class _Pair:
    """One client and its own connection to the server; two threads move bytes until one end is closed."""

    def __init__(self, client: socket.socket, server: socket.socket, *, silent: bool) -> None:
        self.client, self.server = client, server
        self.port = int(client.getpeername()[1])
        self.armed: str | None = None
        self.harmed = threading.Event()
        if silent:
            self.harmed.set()
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._move, args=(source, sink), daemon=True).start()

    def _move(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(BUFFER):
                if source is self.client and self.armed:
                    self._harm(data)
                    return
                if self.harmed.is_set():
                    return
                sink.sendall(data)
        if not self.harmed.is_set():
            self.close()

    def _harm(self, request: bytes) -> None:
        how, self.armed = self.armed, None
        self.harmed.set()  # before the request goes: no byte of its answer may pass
        self.server.sendall(request)
        if how in ("cut", "half"):
            _reset(self.client)
        if how == "cut":
            _reset(self.server)

    def silence(self) -> None:
        """Nothing passes from now on, in neither direction."""
        self.harmed.set()

    def close(self) -> None:
        for end in (self.client, self.server):
            _reset(end)


def _reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class CuttingProxy:
    """Use as a context manager; :meth:`url` is what the tool is given in place of *url*."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        self.upstream = (str(self._url.host), self._url.port or 3306)
        self._pairs: list[_Pair] = []
        self._lock = threading.Lock()
        self._door, self._orders = _listening(), _listening()
        self.port, self.control = self._door.getsockname()[1], self._orders.getsockname()[1]
        self.refusing = self.swallowing = False

    def url(self, schema: str | None = None) -> str:
        """The address through the proxy, with the login and options of the server's own URL."""
        return self._url.set(host="127.0.0.1", port=self.port, database=schema or self._url.database).render_as_string(hide_password=False)

    # What it does to connections

    def arm(self, port: int, how: str) -> None:
        """The next request on the client's *port* gets through, its answer does not."""
        if how not in HARMS:
            raise ValueError(how)
        self._of(port).armed = how

    def cut_all(self) -> None:
        """Every connection is reset now, whatever is under way on it."""
        for pair in self._alive():
            pair.close()

    def silence_all(self) -> None:
        """Nothing passes any more on any connection that is open now; new ones are let in."""
        for pair in self._alive():
            pair.silence()

    def refuse(self, *, refusing: bool) -> None:
        """While refusing, nobody new comes in: each is reset as it comes. What is open stays."""
        self.refusing = refusing

    def swallow(self, *, swallowing: bool) -> None:
        """While swallowing, whoever is new is let in and hears nothing, not even a greeting."""
        self.swallowing = swallowing

    def lead_to(self, url: str) -> None:
        """From now on new connections come to another server, as after a failover; those that are open stay where they are."""
        other = make_url(url)
        self.upstream = (str(other.host), other.port or 3306)

    def _of(self, port: int) -> _Pair:
        with self._lock:
            return next(pair for pair in self._pairs if pair.port == port)

    def _alive(self) -> list[_Pair]:
        with self._lock:
            return [pair for pair in self._pairs if pair.client.fileno() >= 0]

    # Its own threads

    def _let_in(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if self.refusing:
                    _reset(client)
                    continue
                try:
                    server = socket.create_connection(self.upstream, 5)
                except OSError:
                    _reset(client)
                    continue
                server.settimeout(None)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    pair = _Pair(client, server, silent=self.swallowing)
                    self._pairs = [*(old for old in self._pairs if old.client.fileno() >= 0 or old.harmed.is_set()), pair]

    def _obey(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._orders.accept()
                with caller, caller.makefile("rw") as lines:
                    asked: dict[str, Any] = json.loads(lines.readline())
                    getattr(self, asked.pop("do"))(**asked)
                    lines.write("done\n")

    def __enter__(self) -> Self:
        for work in (self._let_in, self._obey):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for door in (self._door, self._orders):
            with suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            door.close()
        with self._lock:
            for pair in self._pairs:
                pair.close()


def _listening() -> socket.socket:
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen(64)
    return door


def ask(control: int, do: str, **more: Any) -> None:
    """From another process: have the proxy that listens on *control* carry out one of its methods, and wait until it has."""
    with socket.create_connection(("127.0.0.1", control), ANSWER_S) as line, line.makefile("rw") as lines:
        lines.write(json.dumps({"do": do, **more}) + "\n")
        lines.flush()
        assert lines.readline() == "done\n"


def client_port(session: Any) -> int:
    """The port by which the proxy knows a session of the tool."""
    return int(session._connection._sock.getsockname()[1])
