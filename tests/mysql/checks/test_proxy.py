"""Proxies between us and the server: those that leave a connection whole are none of our business, others are refused (case C08)."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from steps.checks import Finding, proxy
from steps.mysql import Session
from steps.target import Target

BUFFER = 65_536


class Forwarder:
    """Forwards one connection after the other to the server; *greeting* may change the server's first packet on its way."""

    def __init__(self, target: Target, greeting: Callable[[bytes], bytes]) -> None:
        self.target, self.greeting = target, greeting
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> Target:
        return Target(self.target.url.set(port=self.listener.getsockname()[1]))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection((str(self.target.url.host), self.target.url.port or 3306))
            client.sendall(self.greeting(server.recv(BUFFER)))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while part := source.recv(BUFFER):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        self.listener.close()


def renumbered(greeting: bytes) -> bytes:
    """The same greeting with another connection number: four bytes behind the version's closing NUL."""
    at = greeting.index(b"\x00", 5) + 1
    number = struct.unpack_from("<I", greeting, at)[0]
    return greeting[:at] + struct.pack("<I", number + 1000) + greeting[at + 4:]


@pytest.fixture
def through(database: Target) -> Iterator[Callable[..., Session]]:
    made: list[Forwarder | Session] = []

    def opened(greeting: Callable[[bytes], bytes] = lambda packet: packet) -> Session:
        forwarder = Forwarder(database, greeting)
        session = Session(forwarder.address)
        made.extend((session, forwarder))
        return session

    yield opened
    for one in made:
        one.close()


def test_the_server_itself_is_clean(found: Callable[..., list[Finding]]) -> None:
    assert found(proxy) == []


def test_a_forwarder_that_leaves_the_connection_whole_is_clean(found: Callable[..., list[Finding]],
                                                               through: Callable[..., Session]) -> None:
    assert found(proxy, by=through()) == []


def test_one_that_greets_with_a_number_of_its_own_is_refused(found: Callable[..., list[Finding]],
                                                             through: Callable[..., Session]) -> None:
    session = through(renumbered)

    [finding] = found(proxy, by=session)

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert f"greeted us as connection {session.connection_id + 1000}, and the server behind it says {session.connection_id}" in finding.what
    assert finding.remedy == "give the tool the server's own address"


@pytest.mark.parametrize(("greeted", "numbers", "comment", "says"), [
    (7, [7, 8, 7], "", "changed between statements (7, 8)"),
    (7, [7, 7], "(ProxySQL)", "calls itself (ProxySQL)"),
])
def test_what_else_gives_a_proxy_away(greeted: int, numbers: list[int], comment: str, says: str) -> None:
    [finding] = proxy.judge("h:3306/d", greeted, numbers, comment)

    assert says in finding.what


def test_a_number_beyond_what_the_greeting_can_hold_is_no_difference() -> None:
    assert proxy.judge("h:3306/d", 5, [2**32 + 5], "") == []
