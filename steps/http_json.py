"""One HTTP request with a JSON answer: TLS verified, no redirect followed, bounded in time and size, no secret in any message."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from steps.addresses import LOOPBACK
from steps.errors import Stopped

LONGEST_ANSWER = 1_000_000
SHOWN = 200


class NoAnswer(Exception):
    """Nothing came, or nothing that tells whether the request was carried out: network, TLS, timeout, or a 5xx."""


@dataclass(frozen=True)
class Answer:
    """A status below 500 and what came with it; `document` is None when it is no JSON."""

    status: int
    document: Any

    @property
    def good(self) -> bool:
        return 200 <= self.status <= 299  # noqa: PLR2004  # the 2xx class

    def at(self, path: str) -> str | None:
        """The text at the dotted *path* (`deploy.state`, `items.0.id`), or None where there is none."""
        node = self.document
        for part in path.split("."):
            if isinstance(node, dict) and part in node:
                node = node[part]
            elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
                node = node[int(part)]
            else:
                return None
        return str(node) if isinstance(node, str | int) and not isinstance(node, bool) else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to wherever the answer says; it is an answer like any other instead."""

    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None


def ask(method: str, url: str, *, timeout_s: float, headers: dict[str, str] | None = None, body: dict[str, Any] | None = None,
        ca_file: str | None = None) -> Answer:
    """
    Send one request.

    Raises:
        NoAnswer: see there; a request that changes something has to be looked up or repeated with the same idempotency key.
        Stopped: *ca_file* cannot be used; nothing was sent.
    """
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            raise Stopped(f"ca_file {ca_file}", f"cannot be used ({type(error).__name__})",
                          "correct deploy.http.ca_file, then run the same command again") from None
    proxies: dict[str, str] | None = {} if urlsplit(url).hostname in LOOPBACK else None  # None: as the environment says
    opener = urllib.request.build_opener(_NoRedirects(), urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler(proxies))
    request = urllib.request.Request(url, method=method, headers={"Accept": "application/json"})  # noqa: S310  # http(s) by the plan's model
    for name, value in (headers or {}).items():
        request.add_unredirected_header(name, value)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    host = urlsplit(url).netloc
    try:
        with opener.open(request, timeout=timeout_s) as response:
            return Answer(response.status, _document(response.read(LONGEST_ANSWER)))
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(LONGEST_ANSWER)
        if error.code >= 500:  # noqa: PLR2004  # the 5xx class
            raise NoAnswer(f"{host} answered {error.code}") from None
        return Answer(error.code, _document(text))
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise NoAnswer(f"{host}: {type(reason).__name__}: {str(reason)[:SHOWN]}") from None


def _document(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
