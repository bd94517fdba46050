"""One client's connection: opened when needed, thrown away when broken, and never retried behind the client's back."""

from contextlib import suppress
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy.engine import make_url

from flows.demo.traffic.failure import BROKEN

Row = dict[str, Any]


def quoted(columns: "list[str] | tuple[str, ...]") -> str:
    """Return *columns*, names of our own models, as a list for SQL."""
    return ", ".join(f"`{column}`" for column in columns)


class Session:
    """
    A connection as Prisma opens it: utf8mb4, autocommit, the server's own isolation level, matched rows counted.

    Every method raises pymysql's errors as they come; :meth:`recover` then makes the session usable again.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = make_url(url), name
        self._connection: Any = None

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of *sql*, by column name."""
        with self._open().cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def run(self, sql: str, *values: Any) -> int:
        """Execute *sql*; return the rows it matched."""
        with self._open().cursor() as cursor:
            return int(cursor.execute(sql, values or None))

    def recover(self) -> None:
        """End whatever transaction is open; drop the connection when that fails. Safe to repeat."""
        if self._connection:
            try:
                self._connection.rollback()
            except BROKEN:
                self.close()

    def close(self) -> None:
        """Safe to repeat; the next statement connects anew."""
        if self._connection:
            with suppress(*BROKEN):
                self._connection.close()
        self._connection = None

    def _open(self) -> Any:
        if self._connection is None:
            self._connection = pymysql.connect(
                host=self._url.host or "127.0.0.1",
                port=self._url.port or 3306,
                user=self._url.username,
                password=self._url.password or "",
                database=self._url.database,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=5,
                client_flag=CLIENT.FOUND_ROWS,
                program_name=self._name,
            )
        return self._connection
