"""Between a client and Prefect's API: relays, breaks off, goes silent, or answers 500, when it is told to. Loopback only."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ApiRelay:
    """A listener at `url` for the API at *behind*; *most* requests are let through, after that it is gone."""

    def __init__(self, behind: str, most: int | None = None) -> None:
        self._behind, self._left = urlsplit(behind), most
        self._open: list[socket.socket] = []
        self._listen(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{self._behind.path}"

    def _listen(self, port: int) -> None:
        self.mode = "relays"
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def well_again(self) -> None:
        """As a server that came back, at the same address. What was open is broken off."""
        self.mode = "gone"
        self.gone()
        self._open.clear()
        self._listen(urlsplit(self.url).port or 0)

    def gone(self) -> None:
        """As a server that was killed: nobody listens, every connection is broken off."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # a close alone leaves it listening while somebody waits in accept()
        self._listener.close()
        self._break_off()

    def silent(self) -> None:
        """As a server that hangs: connections are taken, nothing comes back."""
        self.mode = "silent"

    def failing(self) -> None:
        """As a server in trouble: 500 to everything."""
        self.mode = "fails"
        self._break_off()

    def _break_off(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            if self.mode == "silent":
                continue
            if self.mode == "fails":
                threading.Thread(target=self._fail, args=(client,), daemon=True).start()
                continue
            server = socket.create_connection((self._behind.hostname or "", self._behind.port or 80))
            self._open.append(server)
            for source, sink, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._relay, args=(source, sink), kwargs={"asks": asks}, daemon=True).start()

    @staticmethod
    def _fail(client: socket.socket) -> None:
        with suppress(OSError):
            client.recv(65536)
            client.sendall(ERROR)
            client.close()

    def _relay(self, source: socket.socket, sink: socket.socket, *, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                while self.mode == "silent":
                    threading.Event().wait(0.05)
                if asks and self._left is not None and data[:5] in (b"POST ", b"PATCH"):
                    self._left -= 1
                    if self._left < 0:
                        self.gone()
                        return
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.mode = "gone"
        self.gone()
