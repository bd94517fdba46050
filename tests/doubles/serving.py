"""A loopback HTTP server for one test, in a thread of its own."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Handle = Callable[["Request"], "tuple[int, Any] | None"]


class Request(BaseHTTPRequestHandler):
    """One request; `answer` None ends the connection without a word."""

    handle_it: Handle
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    extra: dict[str, str]

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")

    def serve(self) -> None:
        self.extra = {}
        answer = type(self).handle_it(self)
        if answer is None:
            self.close_connection = True
            return
        status, document = answer
        text = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **self.extra}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = serve  # noqa: N815  # the names that the base class calls

    def log_message(self, *_: Any) -> None:
        """Tests are quiet."""


@contextmanager
def serving(handle: Handle, *, certificate: tuple[str, str] | None = None) -> Iterator[str]:
    """The address of a server that answers with *handle*; over TLS with *certificate* (chain file, key file)."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Request,), {"handle_it": staticmethod(handle)}))
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
