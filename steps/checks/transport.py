"""
Whether what is said to a server elsewhere can be read and changed on its way.

Only warned of: many networks are safe by themselves, and a login is no secret even then, since the server's own method hides it. But plan
SQL, keys and the values that a pass binds go over the wire as they are, and whoever sits there could answer as the server.
"""

from __future__ import annotations

import ipaddress

from steps import tls
from steps.checks.finding import Finding, Look
from steps.mysql import Session
from steps.target import Target

NAME = "transport"


def run(look: Look) -> list[Finding]:
    """Asks nobody: the connection itself knows. A socket file and an address of this machine are no way anybody could stand on."""
    if look.session.encryption or is_here(look.target):
        return []
    asked = tls.asked(look.target.url.query).mode == "disabled"
    return [Finding(
        NAME, "warn", f"server {look.target.where}",
        "is spoken to in clear: statements and the values in them can be read and changed on the way"
        + (", as ssl_mode=DISABLED asks" if asked else "; it offers no TLS"),
        "give the server a certificate and name its authority in the URL with ssl_ca, or know that the network is safe")]


def is_here(target: Target) -> bool:
    """Whether *target* is reached without leaving this machine, as its URL says; a name that would have to be looked up is elsewhere."""
    host = target.url.host or ""
    if target.url.query.get("unix_socket") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def told(session: Session) -> str:
    """How the connection is protected, in one line for people."""
    if not session.encryption:
        return "in clear"
    looked = {"verify_identity": "certificate and name looked at", "verify_ca": "certificate looked at, but not its name"}
    return f"{session.encryption}, {looked.get(tls.asked(session.target.url.query).mode, 'certificate not looked at')}"
