"""
The only driver import: sessions with pinned settings, one quoting function, bound values, verbatim plan SQL.

SQL built here marks each value with :data:`VALUE`, a mark that no identifier may contain, so percent signs, colons and
question marks in names or literals mean nothing (cases C78, C79). Plan SQL and DDL go through :meth:`Session.verbatim`,
untouched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import pymysql
import sqlalchemy
from pymysql.constants import CLIENT
from sqlalchemy.pool import NullPool

from steps import cancellable, entry, session_settings
from steps.errors import ConnectionLost, LockTimeout, Refused, StatementFailed, Unreachable
from steps.masking import mask, without_contents
from steps.target import Target

VALUE = "\x00?"
LOST = {0, 2006, 2013, 2014, 2055, 1053, 1077, 3168}
TRY_AGAIN = {1205, 1213, 1317, 3024, 3572}
UNKNOWN_SETTING, READ_ONLY = {1193, 1273}, {1290, 1792, 1836}
QUOTES_ROWS = {1062, 1292, 1366, 1367, 1411, 1525}
LONGEST_NAME = 64
LAST_BMP = 0xFFFF
Row = tuple[Any, ...]
_standing: weakref.WeakSet[Session] = weakref.WeakSet()
_tls: dict[sqlalchemy.URL, object] = {}


def sessions_standing() -> int:
    """How many sessions of this process are open (case C83)."""
    return len(_standing)


def quote(name: str) -> str:
    """
    *name* as an identifier; the only way a name gets into SQL (case C80).

    Raises:
        Refused: for names MySQL or this tool cannot carry: empty, over 64 characters, with NUL, ending in a space,
            or outside the Basic Multilingual Plane.
    """
    if not name or len(name) > LONGEST_NAME or "\x00" in name or name.endswith(" ") or any(ord(c) > LAST_BMP for c in name):
        raise Refused(f"name {name!r}", "is not a usable MySQL identifier", "rename the object or correct the plan")
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """
    *text* as an SQL string for trigger bodies and guards; the same under every sql_mode (case C77).

    Without a character set introducer: the catalogue shows bodies without those, and bodies are compared (case C73).
    """
    return f"'{text}'" if _plain(text) else f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)"


def byte_literal(text: str) -> str:
    """*text* to be held against a binary expression."""
    return f"'{text}'" if _plain(text) else f"x'{text.encode().hex()}'"


def _plain(text: str) -> bool:
    return all(" " <= c <= "~" and c not in "'\\" for c in text)


def shown(sql: str) -> str:
    """*sql* for people and for the ledger: values as `?`, secrets masked."""
    return mask(sql.replace(VALUE, "?"))


def _failure(error: BaseException, what: str) -> StatementFailed:
    args: tuple[Any, ...] = error.args
    errno = args[0] if args and isinstance(args[0], int) else 0
    text = str(args[1]) if len(args) > 1 else str(error)
    if errno in QUOTES_ROWS:
        text = without_contents(text)
    kind = ConnectionLost if errno in LOST or isinstance(error, pymysql.err.InterfaceError) else StatementFailed
    if errno in TRY_AGAIN:
        kind = LockTimeout
    remedy = "the server is read-only now (failover or full disk?)" if errno in READ_ONLY else ""
    return kind(mask(what), mask(f"MySQL error {errno}: {text}"), remedy, errno)


@dataclass(frozen=True)
class Waits:
    """How long a session's statements may wait for metadata locks and row locks: whole seconds, MySQL's own backstop."""

    lock_wait_timeout_s: int = 2
    innodb_lock_wait_timeout_s: int = 2


class Session:
    """
    One pinned connection. Settings are set and read back when it opens (cases C02, C08, C49, C67); it never reconnects.

    `multi` opens it for packets of several statements (the guarded fire of :mod:`steps.hold`).
    """

    def __init__(self, target: Target, *, waits: Waits = Waits(), multi: bool = False,
                 read_timeout_s: int | None = None) -> None:
        arguments: dict[str, Any] = {
            "connect_timeout": 5, "program_name": "mysql-rollout", "charset": "utf8mb4",
            "client_flag": (CLIENT.MULTI_STATEMENTS if multi else 0) | CLIENT.FOUND_ROWS, "read_timeout": read_timeout_s,
        } | ({"ssl": _tls[target.url]} if target.url in _tls else {})
        engine = sqlalchemy.create_engine(target.url, poolclass=NullPool, hide_parameters=True, connect_args=arguments)
        try:
            fairy = engine.raw_connection()
        except (sqlalchemy.exc.DBAPIError, pymysql.err.Error, RuntimeError, OSError) as error:  # the driver's own errors come through too
            raise self._no_entry(target, getattr(error, "orig", None) or error) from None
        driver: Any = fairy.driver_connection
        self._connection = driver
        fairy.detach()
        if self._connection.server_capabilities & CLIENT.SSL:
            _tls[target.url] = self._connection.ctx  # reading the system's certificates takes 30 ms and more, each time
        self.target, self.schema = target, target.url.database
        _standing.add(self)
        self._set_up(waits)

    @staticmethod
    def _no_entry(target: Target, error: BaseException) -> Unreachable:
        failure = _failure(error, "connect")
        return Unreachable(f"server {target.where}", failure.reason,
                           entry.REMEDIES.get(failure.errno, "check address, account and network") + "; nothing was touched")

    def _set_up(self, waits: Waits) -> None:
        wanted = session_settings.wanted(waits.lock_wait_timeout_s, waits.innodb_lock_wait_timeout_s)
        if not self._set(wanted):
            wanted = {name: value for name, value in wanted.items() if self._set({name: value})}
        self.connection_id, *values = self.one("SELECT CONNECTION_ID(), " + ", ".join(f"@@session.{n}" for n in wanted))
        for (name, want), got in zip(wanted.items(), values, strict=True):
            if set(str(want).split(",")) != set(str(got).split(",")):
                raise Refused(f"session of {self.target.where}", f"{name} is {got} after SET {want}",
                              "give the tool a direct address instead of a proxy that swallows SET")

    def _set(self, values: dict[str, Any]) -> bool:
        """Whether the server knows all of them; one that does not is older, or of another flavour, which a check refuses by name."""
        try:
            self.run("SET " + ", ".join(f"SESSION {name} = {VALUE}" for name in values), *values.values())
        except StatementFailed as error:
            if error.errno not in UNKNOWN_SETTING:
                raise
            return False
        return True

    @property
    def greeted_id(self) -> int:
        """What the other end called this connection when it answered; a proxy has numbers of its own (case C08)."""
        return int(self._connection.thread_id())

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[Any]:
        """A cursor whose driver errors come out as ours, with *sql* as it may be shown."""
        try:
            with cancellable.statement(self), self._connection.cursor() as cursor:
                yield cursor
        except pymysql.err.Error as error:
            raise _failure(error, shown(sql)) from None
        except (OSError, AttributeError) as error:
            raise ConnectionLost(shown(sql), f"connection lost: {type(error).__name__}", "", 2013) from None

    def verbatim(self, sql: str) -> int:
        """Send *sql* exactly as it is, no formatting of any kind; return the row count."""
        with self._cursor(sql) as cursor:
            return int(cursor.execute(sql))

    def read_verbatim(self, sql: str) -> list[Row]:
        """Rows of a plan's own query, sent exactly as it is."""
        with self._cursor(sql) as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def packet(self, first: str, second: str, guard: Callable[[], AbstractContextManager[None]]) -> None:
        """
        Send two statements in one packet; *guard* is entered once the first has succeeded and surrounds the second.

        When the first fails the server does not start the second. Only on a session opened with `multi`.
        """
        with self._cursor(second) as cursor:
            cursor.execute(f"{first}; {second}")
            with guard():
                cursor.nextset()

    def bound(self, sql: str, values: tuple[Any, ...]) -> str:
        """*sql* with every :data:`VALUE` replaced by the driver's escaped literal."""
        pieces = sql.split(VALUE)
        if len(pieces) != len(values) + 1:
            raise StatementFailed(shown(sql), f"{len(values)} values for {len(pieces) - 1} places")
        return pieces[0] + "".join(self._connection.escape(value, self._connection.encoders) + piece
                                   for value, piece in zip(values, pieces[1:], strict=True))

    def query(self, sql: str, *values: Any) -> list[Row]:
        """Rows of *sql*, each :data:`VALUE` bound to one of *values*."""
        text = self.bound(sql, values)
        with self._cursor(sql) as cursor:
            cursor.execute(text)
            return list(cursor.fetchall())

    def one(self, sql: str, *values: Any) -> Row:
        """The first row of *sql*."""
        return self.query(sql, *values)[0]

    def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row, or None when there is no row."""
        rows = self.query(sql, *values)
        return rows[0][0] if rows else None

    def run(self, sql: str, *values: Any) -> int:
        """Execute *sql* with bound values; return matched rows."""
        text = self.bound(sql, values)
        with self._cursor(sql) as cursor:
            return int(cursor.execute(text))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end, roll back on any error: one batch is one transaction (case C61)."""
        self.run("START TRANSACTION")
        try:
            yield
        except BaseException:
            try:
                self.run("ROLLBACK")
            except StatementFailed:
                self.close()
            raise
        self.run("COMMIT")

    def warnings(self) -> list[str]:
        """What SHOW WARNINGS has to say about the last statement, without row contents."""
        return [f"{code}" for _level, code, _text in self.query("SHOW WARNINGS")]

    def close(self) -> None:
        """Safe to repeat."""
        _standing.discard(self)
        with suppress(pymysql.err.Error):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
