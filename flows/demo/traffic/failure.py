"""How a request failed, as the kind that reports count by: MySQL's number, or an application's code such as P2022."""

import pymysql

DEADLOCK, SNAPSHOT_TOO_OLD = 1213, 1412
LOST = 2013
SERVER_GOES, KILLED = 1053, 1927
Kind = int | str


class ApplicationFailedError(Exception):
    """
    An application answered with an error: its own *code*, *mysql* when the server gave a number.

    `unknown`: whether the write may have happened all the same, since the connection was lost before an answer.
    """

    def __init__(self, code: str, mysql: int | None, said: str) -> None:
        super().__init__(code, mysql, said)
        self.kind: Kind = mysql if mysql in (DEADLOCK, SNAPSHOT_TOO_OLD) else code
        from_server = mysql is not None and (1000 <= mysql < 2000 or 3000 <= mysql < 4000)  # noqa: PLR2004  # 2xxx are a driver's own
        self.unknown = not from_server or mysql in (SERVER_GOES, KILLED)


BROKEN = (pymysql.err.MySQLError, OSError, ApplicationFailedError)


def kind_of(error: BaseException) -> Kind:
    """Return the kind of *error*; 2013, connection lost, for one that has neither number nor code."""
    if isinstance(error, ApplicationFailedError):
        return error.kind
    first = error.args[0] if error.args and not isinstance(error, OSError) else None
    return first if isinstance(first, int) and first else LOST
