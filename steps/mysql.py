"""
The only driver import: sessions with pinned settings, one quoting function, bound values, verbatim plan SQL.

SQL built here marks each value with :data:`VALUE`, a mark that no identifier may contain, so percent signs, colons and
question marks in names or literals mean nothing (cases C78, C79). Plan SQL and DDL go through :meth:`Session.verbatim`,
untouched.
"""

from __future__ import annotations

import socket
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Self

import pymysql
import sqlalchemy
from pymysql.constants import CLIENT
from sqlalchemy.pool import NullPool

from steps import answers, cancellable, entry, session_settings, tcp, tls
from steps.errors import ConnectionLost, Refused, StatementFailed
from steps.masking import mask
from steps.quoting import LONGEST_NAME, VALUE, byte_literal, literal, quote
from steps.server_errors import UNKNOWN_SETTING, failure
from steps.session_settings import Waits
from steps.target import Target

__all__ = ["LONGEST_NAME", "VALUE", "Row", "Session", "Waits", "byte_literal", "literal", "quote", "sessions_standing", "shown"]
USUAL = Waits()
OPENING_S, IN_TRANSACTION_S = 10, 60
Row = tuple[Any, ...]
_standing: weakref.WeakSet[Session] = weakref.WeakSet()


def sessions_standing() -> int:
    """How many sessions of this process are open (case C83)."""
    return len(_standing)


def shown(sql: str) -> str:
    """*sql* for people and for the ledger: values as `?`, secrets masked."""
    return mask(sql.replace(VALUE, "?"))


def _failure(error: BaseException, what: str) -> StatementFailed:
    return failure(error.args, what, lost=isinstance(error, pymysql.err.InterfaceError))


class Session:
    """
    One pinned connection. Settings are set and read back when it opens (cases C02, C08, C49, C67); it never reconnects.

    `multi` opens it for packets of several statements (the guarded fire of :mod:`steps.hold`). Without `read_timeout_s` a statement
    may take as long as the server works on it (:mod:`steps.answers`); opening is bounded always.
    """

    def __init__(self, target: Target, *, waits: Waits = USUAL, multi: bool = False, read_timeout_s: int | None = None) -> None:
        arguments: dict[str, Any] = {
            "connect_timeout": 5, "program_name": "mysql-rollout", "charset": "utf8mb4",
            "client_flag": (CLIENT.MULTI_STATEMENTS if multi else 0) | CLIENT.FOUND_ROWS, "write_timeout": OPENING_S,
            "read_timeout": min(read_timeout_s or OPENING_S, OPENING_S),
            "password": str(target.url.password or "").encode(),  # as the server has it; the driver itself would take Latin-1
        } | entry.security(target)
        url = target.url.difference_update_query(tls.OPTIONS)
        engine = sqlalchemy.create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=arguments)
        try:
            fairy = engine.raw_connection()
        except (sqlalchemy.exc.DBAPIError, pymysql.err.Error, RuntimeError, OSError) as error:  # the driver's own errors come through too
            cause = getattr(error, "orig", None) or error
            raise entry.refused(target, cause, _failure(cause, "connect")) from None
        driver: Any = fairy.driver_connection
        fairy.detach()
        self._connection, self.target, self.schema, self._is_patient = driver, target, target.url.database, False
        _standing.add(self)
        if self.encryption:
            entry.keep(target, self._connection.ctx)
        try:
            self._set_up(waits)
            tcp.notice_silence(driver._sock)  # noqa: SLF001  # the driver has no other way to it
        except BaseException as error:
            self.close()
            if isinstance(error, ConnectionLost):
                raise entry.refused(target, error, error) from None
            raise
        tcp.limit(driver, read_timeout_s)  # another than for opening
        self._is_patient = read_timeout_s is None

    def _set_up(self, waits: Waits) -> None:
        wanted = session_settings.wanted(waits)
        if not self._set(wanted):
            wanted = {name: value for name, value in wanted.items() if self._set({name: value})}
        self.connection_id, *values = self.one("SELECT CONNECTION_ID(), " + ", ".join(f"@@session.{n}" for n in wanted))
        self._silence_s, self.server_uuid = waits.silence_s, self._uuid()
        for (name, want), got in zip(wanted.items(), values, strict=True):
            if set(str(want).split(",")) != set(str(got).split(",")):
                raise Refused(f"session of {self.target.where}", f"{name} is {got} after SET {want}",
                              "give the tool a direct address instead of a proxy that swallows SET")

    def _uuid(self) -> str:
        """Which server this is, whatever its address; nothing where the server is of another flavour, which a check refuses by name."""
        try:
            return str(self.value("SELECT @@server_uuid"))
        except StatementFailed as error:
            if error.errno not in UNKNOWN_SETTING:
                raise
            return ""

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
    def encryption(self) -> str | None:
        """The version of TLS spoken on this connection, or None where all goes in clear. A proxy's other side is not known."""
        version = getattr(self._connection._sock, "version", None)  # noqa: SLF001  # the driver has no word for it
        return str(version()) if version else None

    @property
    def greeted_id(self) -> int:
        """What the other end called this connection when it answered; a proxy has numbers of its own (case C08)."""
        return int(self._connection.thread_id())

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[Any]:
        """A cursor whose driver errors come out as ours, with *sql* as it may be shown."""
        try:
            with cancellable.statement(self), answers.awaited(self, self._is_patient), self._connection.cursor() as cursor:
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
        """
        Commit at the end, roll back on any error, of the COMMIT too: one batch is one transaction (case C61).

        Meanwhile neither side waits for the other for longer than a minute: a machine that vanished must not leave row locks, and a server
        whose disk is full lets a COMMIT wait until there is room (case C26).
        """
        with self._answered_within(IN_TRANSACTION_S):
            self.run(f"SET SESSION wait_timeout = {IN_TRANSACTION_S}")
            self.run("START TRANSACTION")
            try:
                yield
                self.run("COMMIT")  # 1205 while a backup holds commits up: the transaction is open still
            except BaseException:
                try:
                    self.run("ROLLBACK")
                    self.run(f"SET SESSION wait_timeout = {self._silence_s}")
                except StatementFailed:
                    self.close()
                raise
            self.run(f"SET SESSION wait_timeout = {self._silence_s}")

    @contextmanager
    def _answered_within(self, seconds: int) -> Iterator[None]:
        patient, self._is_patient = self._is_patient, False
        before = tcp.limit(self._connection, seconds)
        try:
            yield
        finally:
            self._is_patient = patient
            tcp.limit(self._connection, before)

    def warnings(self) -> list[str]:
        """What SHOW WARNINGS has to say about the last statement, without row contents."""
        return [f"{code}" for _level, code, _text in self.query("SHOW WARNINGS")]

    def beside(self) -> Session:
        """Another session on the same address, for a look at this one."""
        return Session(self.target, read_timeout_s=OPENING_S)

    def cut(self) -> None:
        """End the connection under whoever waits for its answer, from another thread: it gets :class:`ConnectionLost`. Safe to repeat."""
        with suppress(OSError, AttributeError):
            socket.socket.shutdown(self._connection._sock, socket.SHUT_RDWR)  # noqa: SLF001  # TLS's own fails in the waiting thread

    def close(self) -> None:
        """Safe to repeat."""
        _standing.discard(self)
        with suppress(pymysql.err.Error):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
