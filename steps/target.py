"""Which database a command means: SQLAlchemy's and Prisma's forms of a URL, checked without ever echoing the password."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import sqlalchemy
from sqlalchemy.engine import URL

from steps import masking, tls
from steps.errors import WrongUsage

ENVIRONMENT = "ROLLOUT_DATABASE_URL"
ENVIRONMENT_FILE = "ROLLOUT_DATABASE_URL_FILE"
"""Names a file that holds the URL, as a container's secrets are given."""
SCHEMES = {"mysql", "mysql+pymysql", "mysql+mysqldb", "mysql+mysqlconnector", "mysql2"}
PRISMA_ONLY = {"connection_limit", "pool_timeout", "connect_timeout", "socket_timeout", "statement_cache_size", "pgbouncer",
               "max_idle_connection_lifetime", "schema"}
PRISMA_NAMES = {"socket": "unix_socket", "sslcert": "ssl_ca"}  # Prisma's sslcert is the authority's certificate
KEPT = {"unix_socket", "charset"}
SHAPE = "mysql://USER:PASSWORD@HOST:PORT/DATABASE"


@dataclass(frozen=True, repr=False)
class Target:
    """A database to work on. Its repr and `where` never show the password."""

    url: URL

    @property
    def schema(self) -> str:
        return self.url.database or ""

    @property
    def where(self) -> str:
        return f"{self.url.host}:{self.url.port or 3306}/{self.url.database}"

    def __repr__(self) -> str:
        return f"Target({self.where})"


def target_of(given: str | None) -> Target:
    """
    The database of *given*, else of `ROLLOUT_DATABASE_URL`, else of the file that `ROLLOUT_DATABASE_URL_FILE` names.

    Raises:
        WrongUsage: no URL, another kind of database, a malformed one, one that names no database, or a file that cannot be read.
    """
    text = given or os.environ.get(ENVIRONMENT) or _of_file(os.environ.get(ENVIRONMENT_FILE))
    subject = "--database-url" if given else ENVIRONMENT
    if not text:
        raise WrongUsage("database", "no URL was given", f"pass --database-url or set {ENVIRONMENT} to {SHAPE}")
    scheme, found, rest = text.partition("://")
    if not found or scheme not in SCHEMES:
        raise WrongUsage(subject, "is not a MySQL URL", f"write {SHAPE}")
    if rest.partition("?")[0].count("@") > 1:
        masking.remember(rest.partition("?")[0].rpartition("@")[0].partition(":")[2])
        raise WrongUsage(subject, "has an unescaped @ in user or password", "encode it as %40")
    try:
        url = sqlalchemy.make_url(f"mysql+pymysql://{rest}")
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise WrongUsage(subject, "is malformed", f"write {SHAPE}; encode @ : / in the password") from None
    masking.remember(str(url.password) if url.password is not None else None)
    if not url.host or not url.database:
        raise WrongUsage(subject, "names no " + ("host" if not url.host else "database"), f"write {SHAPE}")
    return Target(url.set(database=unquote(url.database), query=_options(url, subject)))


def is_given() -> bool:
    """Whether the environment names a database, by either variable."""
    return bool(os.environ.get(ENVIRONMENT) or os.environ.get(ENVIRONMENT_FILE))


def _of_file(name: str | None) -> str | None:
    if not name:
        return None
    try:
        return Path(name).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not text"
        raise WrongUsage(ENVIRONMENT_FILE, f"names {name}, which cannot be read: {why}", "let the tool's user read it") from None


def _options(url: URL, subject: str) -> dict[str, str]:
    """The URL's options in our own words, checked; Prisma's that say nothing to us are left out."""
    if {"sslidentity", "sslpassword"} & set(url.query):
        raise WrongUsage(subject, "has a PKCS12 identity, which the driver cannot read", "use ssl_cert and ssl_key with PEM files")
    options: dict[str, str] = {}
    for name, value in url.query.items():
        ours = PRISMA_NAMES.get(name, name).replace("-", "_")
        if ours in options or not isinstance(value, str):
            raise WrongUsage(subject, f"has {ours} twice", "keep one of them")
        options[ours] = value
    unknown = set(options) - KEPT - PRISMA_ONLY - tls.OPTIONS
    if unknown:
        raise WrongUsage(subject, f"has unknown options {', '.join(sorted(unknown))}", f"known: {', '.join(sorted(KEPT | tls.OPTIONS))}")
    return {name: value for name, value in options.items() if name in KEPT} | tls.asked(options, subject).query
