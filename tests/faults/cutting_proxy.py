"""
A TCP proxy between the tool and MySQL that harms connections when it is told to: loopback only, gone with its context.

Bytes pass untouched, TLS and all, so the tool sees the server's own greeting. A connection is known by its port as the server's
PROCESSLIST shows it. Once *armed* it lets the next request through to the server and keeps the answer from the client, in one of
these ways:

- `cut`: both ends are closed at once; the server goes on with the statement and notices at its end.
- `half`: the client's end is closed, the server's stays open: it thinks that the client is there and keeps all that it holds.
- `silent`: both ends stay open and nothing passes any more, as when a firewall forgets a connection.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

from sqlalchemy import make_url

BUFFER = 65_536
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends an RST
HARMS = ("cut", "half", "silent")


class _Pair:
    """One client and its own connection to the server; two threads move bytes until one end is closed."""

    def __init__(self, client: socket.socket, server: socket.socket, *, silent: bool) -> None:
        self.client, self.server = client, server
        self.port = int(server.getsockname()[1])
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
        self._door = socket.socket()
        self._door.bind(("127.0.0.1", 0))
        self._door.listen(64)
        self.port = self._door.getsockname()[1]
        self.refusing = self.swallowing = False

    def url(self, schema: str | None = None) -> str:
        """The address through the proxy, with the login and options of the server's own URL."""
        return self._url.set(host="127.0.0.1", port=self.port, database=schema or self._url.database).render_as_string(hide_password=False)

    # What it does to connections

    def arm(self, port: int, how: str) -> None:
        """The next request on the connection that comes to the server from *port* gets through, its answer does not."""
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

    def __enter__(self) -> Self:
        threading.Thread(target=self._let_in, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        with self._lock:
            for pair in self._pairs:
                pair.close()


HOST_OF = "SELECT HOST FROM information_schema.PROCESSLIST WHERE ID = %s"


def port_of(host: object) -> int:
    """The port in what :data:`HOST_OF` shows, by which the proxy knows a connection."""
    return int(str(host).rpartition(":")[2])
