"""
What a URL asks for in TLS, in the words of MySQL's client, of the driver and of Prisma, and the context that carries it out.

Five modes, as `mysql --ssl-mode` has them. Without a word it is `preferred`: encrypted where the server offers it, and nobody's
certificate looked at. An authority alone (`ssl_ca`) means `verify_identity`, the strictest. No option is handed to the driver, whose own
reading drops the authority as soon as `ssl_verify_identity` stands beside it, and then compares no name.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from steps.errors import WrongUsage

Known = TypeVar("Known")
MODES = {mode: mode for mode in ("disabled", "preferred", "required", "verify_ca", "verify_identity")}
PRISMAS = {"strict": "verify_identity", "accept_invalid_certs": "required"}
WITHOUT_CA, WITHOUT_CERT = ("disabled", "preferred", "required"), ("disabled", "preferred")
SWITCHES = ("ssl_check_hostname", "ssl_verify_identity", "ssl_verify_cert", "ssl_disabled")
FILES = ("ssl_ca", "ssl_cert", "ssl_key")
OPTIONS = {"ssl_mode", "sslaccept", *SWITCHES, *FILES}
BOOLEANS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)


@dataclass(frozen=True)
class Tls:
    """One of :data:`MODES`, the authority to trust (else the system's), and what we show of ourselves: certificate and key as PEM files."""

    mode: str = "preferred"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @property
    def verifies(self) -> bool:
        return self.mode in ("verify_ca", "verify_identity")

    @property
    def query(self) -> dict[str, str]:
        """As a URL says it in words of MySQL's client; nothing where nothing was asked for."""
        said = {"ssl_mode": None if self.mode == "preferred" else self.mode.upper(), "ssl_ca": self.ca, "ssl_cert": self.cert,
                "ssl_key": self.key}
        return {name: value for name, value in said.items() if value}


def asked(query: Mapping[str, object], subject: str = "database URL") -> Tls:
    """
    What the options in *query* ask for; others are passed over.

    Raises:
        WrongUsage: a value that an option has not, or two options that contradict each other.
    """
    said = {name: str(value) for name, value in query.items() if name in OPTIONS}
    ca, cert, key = (said.get(name) or None for name in FILES)
    mode = _mode(said, subject) or ("verify_identity" if ca else "required" if cert or key else "preferred")
    if key and not cert:
        raise WrongUsage(subject, "has ssl_key without ssl_cert", "add the certificate that belongs to it")
    for name, path, without in (("ssl_ca", ca, WITHOUT_CA), ("ssl_cert", cert, WITHOUT_CERT)):
        if path and mode in without:
            raise WrongUsage(subject, f"has {name}, which ssl_mode={mode.upper()} does not use",
                             f"say ssl_mode=VERIFY_IDENTITY or another that does, or leave {name} out")
    return Tls(mode, ca, cert, key)


def _mode(said: Mapping[str, str], subject: str) -> str | None:
    """The one mode that all options speak of, or None where none does."""
    switches = {name: _known(BOOLEANS, name, said[name], subject) for name in SWITCHES if name in said}
    wishes = {"ssl_mode": _known(MODES, "ssl_mode", said["ssl_mode"], subject)} if "ssl_mode" in said else {}
    if "sslaccept" in said:
        wishes["sslaccept"] = _known(PRISMAS, "sslaccept", said["sslaccept"], subject)
    wish = _switched(switches, has_ca=bool(said.get("ssl_ca")))
    wishes |= {name: wish for name in switches if wish}
    names = {switches[name] for name in ("ssl_check_hostname", "ssl_verify_identity") if name in switches}
    if len(set(wishes.values())) > 1 or len(names) > 1:
        raise WrongUsage(subject, f"has {' and '.join(f'{name}={said[name]}' for name in wishes)}, which contradict each other",
                         "keep one of them")
    return next(iter(wishes.values()), None)


def _switched(switches: Mapping[str, bool], *, has_ca: bool) -> str | None:
    """The mode that the driver's yes-or-no options mean together: the strictest that they ask for and none denies."""
    if not switches or switches == {"ssl_disabled": False}:
        return None
    if switches.get("ssl_disabled"):
        return "disabled"
    certificate = switches.get("ssl_verify_cert")
    name = switches.get("ssl_verify_identity", switches.get("ssl_check_hostname"))
    if certificate is False and not name:
        return "required"
    if name or (name is None and has_ca):
        return "verify_identity"
    return "verify_ca" if has_ca or certificate else "required"


def _known(values: Mapping[str, Known], name: str, value: str, subject: str) -> Known:
    if value.lower() not in values:
        raise WrongUsage(subject, f"has {name}={value}", f"known: {', '.join(values)}")
    return values[value.lower()]


def context(tls: Tls) -> ssl.SSLContext:
    """
    What the driver wraps its socket with. Nobody is ever asked for a passphrase.

    Raises:
        OSError: a file cannot be read, is not what it should be, or is a key under a passphrase; :func:`unusable` says which.
    """
    made = ssl.create_default_context(cafile=tls.ca) if tls.verifies else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = tls.mode == "verify_identity"
    made.verify_mode = ssl.CERT_REQUIRED if tls.verifies else ssl.CERT_NONE
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the certificates that MySQL makes itself do not pass it
    if tls.cert:
        made.load_cert_chain(tls.cert, tls.key, password="")  # without one OpenSSL would ask on the terminal
    return made


def unusable(tls: Tls) -> str:
    """Which file kept :func:`context` from being made, and why."""
    for option, path in zip(FILES, (tls.ca, tls.cert, tls.key), strict=True):
        try:
            text = Path(path).read_text(encoding="latin-1") if path else "-----BEGIN "
        except OSError as error:
            return f"{option} {path} cannot be read ({error.strerror or type(error).__name__})"
        if "-----BEGIN " not in text:
            return f"{option} {path} is no PEM file"
        if "ENCRYPTED" in text:
            return f"{option} {path} is under a passphrase, and nobody is there to type it"
    if not tls.cert:
        return f"ssl_ca {tls.ca} holds no certificate"
    return f"ssl_cert {tls.cert} and ssl_key {tls.key or tls.cert} do not belong together"
