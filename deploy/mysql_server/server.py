"""What a caller is given: where the server is."""

from dataclasses import dataclass
from pathlib import Path

import pymysql
from sqlalchemy.engine import URL, make_url


@dataclass(frozen=True)
class Server:
    """
    A MySQL server that answers at *url*, `mysql+pymysql://root:PASSWORD@127.0.0.1:PORT/`, which names no database.

    *way* is how it came: "url", "docker", "path" or "private". *folder* (its `data/`, `tmp/` and `mysqld.log`) and
    *pid* (of mysqld) are None for a server that is not a process of ours on this machine.
    """

    url: str
    way: str
    version: str
    folder: Path | None
    pid: int | None


def server_url(user: str, password: str, host: str, port: int) -> str:
    """Return the SQLAlchemy URL of a server, without a database."""
    url = URL.create("mysql+pymysql", username=user, password=password, host=host, port=port, database="")
    return url.render_as_string(hide_password=False)


def asked_version(url: str) -> str:
    """
    Return the version the server at *url* states.

    Raises:
        pymysql.err.OperationalError: nothing answers there within 5 s, or the login is refused.
    """
    where = make_url(url)
    connection = pymysql.connect(
        host=where.host or "127.0.0.1",
        port=where.port or 3306,
        user=where.username,
        password=where.password or "",
        connect_timeout=5,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        row = cursor.fetchone()
    return str(row[0]) if row else ""
