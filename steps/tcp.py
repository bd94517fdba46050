"""How soon the machine notices that nobody is at the other end of a connection any more (case C93)."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

IDLE_S, EVERY_S, PROBES = 30, 10, 3
OPTIONS = ((("TCP_KEEPIDLE", "TCP_KEEPALIVE"), IDLE_S), (("TCP_KEEPINTVL",), EVERY_S), (("TCP_KEEPCNT",), PROBES))
"""Linux' and macOS' names; where the system has none of them, its own two hours stand."""


def notice_silence(connection: socket.socket) -> None:
    """
    Ask the other end after half a minute of silence whether it is there, and give up a minute later; a Unix socket needs none of it.

    That also keeps firewalls and load balancers from forgetting a connection that is idle while another one works for hours.
    """
    if connection.family == getattr(socket, "AF_UNIX", None):
        return
    for names, value in OPTIONS:
        number = next((getattr(socket, name) for name in names if hasattr(socket, name)), None)
        if number is not None:
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, number, value)


def limit(driver: Any, seconds: int | None) -> int | None:
    """Each read of *driver*'s may last *seconds* from now on, None for ever; returns what it was."""
    before: int | None = driver._read_timeout  # noqa: SLF001  # the driver takes it at its opening only
    driver._read_timeout = seconds  # noqa: SLF001
    return before
