"""
Whether the address is the server itself: connections are told apart, locked by and ended by their number (case C08).

A proxy that shares connections between clients loses named locks, LOCK TABLES and session settings between two statements.
"""

from __future__ import annotations

from collections.abc import Iterable

from steps.checks.finding import Finding, Look

NAME = "proxy"
LOOKS = 3
NUMBERS = 2**32
"""The greeting has room for 32 bits of a connection's number."""


def run(look: Look) -> list[Finding]:
    """Asks for the connection's number a few times; a TCP forwarder that leaves the connection whole is no finding."""
    comment = str(look.session.value("SELECT @@version_comment"))
    numbers = [look.session.connection_id, *(int(look.session.value("SELECT CONNECTION_ID()")) for _ in range(LOOKS))]
    return judge(look.target.where, look.session.greeted_id, numbers, comment)


def judge(where: str, greeted: int, numbers: Iterable[int], comment: str = "") -> list[Finding]:
    """What the number in the greeting, and the *numbers* that statements saw, say of the way to the server."""
    seen = sorted(set(numbers))
    if len(seen) > 1:
        what = f"the connection's number changed between statements ({', '.join(map(str, seen))})"
    elif seen[0] % NUMBERS != greeted % NUMBERS:
        what = f"it greeted us as connection {greeted}, and the server behind it says {seen[0]}"
    elif "proxysql" in comment.lower():
        what = f"it calls itself {comment}"
    else:
        return []
    return [Finding(
        NAME, "refuse", f"server {where}",
        f"this address looks like a proxy: {what}; named locks, session settings and KILL would not reach the right connection",
        "give the tool the server's own address")]
