"""Why a server does not let a connection in, and what to do: its number of connections, the account, the way there (cases C83, C86)."""

from __future__ import annotations

import ssl
from typing import Any

from sqlalchemy import URL

from steps import cancellation, tls
from steps.errors import StatementFailed, Unreachable
from steps.target import Target

_ACCOUNT = "the account has as many connections as it may (max_user_connections): close some, or raise the limit with ALTER USER … WITH"
_ANYWAY = "check address, account and network"
REMEDIES = {
    1040: "the server has as many connections as it takes (max_connections): close idle ones or raise the limit",
    1203: f"{_ACCOUNT} MAX_USER_CONNECTIONS or the server's max_user_connections",
    1226: f"{_ACCOUNT} MAX_USER_CONNECTIONS; a limit per hour ends with the hour",
    1044: "correct the database in the URL, or grant the account what deploy/grants.sql lists",
    1045: "check user, password and the host that the account is bound to; an account with REQUIRE SSL or REQUIRE X509 is also refused so "
          "where TLS or a client's certificate (ssl_cert, ssl_key) is missing",
    1049: "correct the database in the URL",
    1820: "give the account a new password",
    1862: "give the account a new password",
    3118: "unlock the account with ALTER USER … ACCOUNT UNLOCK",
    3159: "the server takes encrypted connections only (require_secure_transport): ask for one with ssl_mode=REQUIRED or more",
    2026: "the server offers no TLS: give it a certificate, or ask for none with ssl_mode=DISABLED if the way there is safe",
}
"""By MySQL's error number."""

OTHER_NAME = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH and …_IP_ADDRESS_MISMATCH
NOT_YET, EXPIRED = 9, 10
_kept: dict[URL, object] = {}


def security(target: Target) -> dict[str, Any]:
    """
    The driver's arguments for what the URL asks for in TLS.

    Raises:
        Unreachable: a file that it names will not do; the server was not asked.
    """
    asked = tls.asked(target.url.query)
    if asked.mode == "disabled":
        return {"ssl_disabled": True}
    if asked.mode == "preferred":
        return {"ssl": _kept[target.url]} if target.url in _kept else {}
    try:
        return {"ssl": tls.context(asked)}
    except OSError:
        raise Unreachable(f"server {target.where}", f"cannot be asked with TLS: {tls.unusable(asked)}",
                          "correct the path, or the file; nothing was touched") from None


def keep(target: Target, context: object) -> None:
    """Remember a context that has served: making one reads the system's certificates, 30 ms and more each time."""
    _kept[target.url] = context


def refused(target: Target, error: BaseException, failure: StatementFailed) -> Unreachable:
    """
    What the driver's *error*, told as *failure*, means at the door: nothing was sent to the server but a greeting, so nothing was touched.

    The driver tells a certificate that will not do as an address that cannot be reached (2003), and keeps the cause beside it.

    Raises:
        Cancelled: the run was asked to stop meanwhile, which is what its person hears.
    """
    cancellation.edge(only_main=True)
    cause = getattr(error, "original_exception", error)
    reason, remedy = failure.reason, REMEDIES.get(failure.errno, _ANYWAY)
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason, remedy = _certificate(target, cause)
    elif isinstance(cause, ssl.SSLError):
        reason = f"TLS failed: {getattr(cause, 'reason', None) or cause}"
        remedy = "check which versions and ciphers the server speaks, and ssl_cert"
    return Unreachable(f"server {target.where}", reason, f"{remedy}; nothing was touched", failure.errno)


def _certificate(target: Target, cause: ssl.SSLCertVerificationError) -> tuple[str, str]:
    why = cause.verify_message
    if cause.verify_code in OTHER_NAME:
        remedy = (f"connect by a name that the certificate carries instead of {target.url.host}; if it carries none, as those that MySQL "
                  "makes itself, look at the authority alone with ssl_mode=VERIFY_CA")
        return f"its certificate is another host's: {why}", remedy
    if cause.verify_code in (NOT_YET, EXPIRED):
        return f"its certificate is not valid now: {why}", "renew it, or set the clock of this machine"
    remedy = "name the authority that issued it in ssl_ca; if that is what you did, somebody else answers at this address"
    trusted = tls.asked(target.url.query).ca or "the system's list"
    return f"its certificate was issued by nobody in {trusted}: {why}", remedy
