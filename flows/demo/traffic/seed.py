"""The old database as production had it: baseline.sql, the ADR's nine rows, and as much history as asked for."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import pymysql
import sqlglot
from sqlalchemy.engine import make_url

from flows.demo.traffic.client import cuid
from flows.demo.traffic.generations import OLD_TYPES, PLAN_FOLDER, TABLE, V0_COLUMNS
from flows.demo.traffic.session import Session, quoted

SEED = 2002
STATEMENT_ROWS = 2000
FIRST_ROWS = 20_000  # made here; the rest are copies that the server makes, several times as fast
APART_S = 7  # between two jobs of the history
PRODUCTION = ("completed",) * 6 + ("failed",) * 2 + ("processing",)
ANSWERED = 2  # of the nine; the ADR counts answerId as 78 % NULL and sessionId as 100 % NULL
MOST_PENDING = 20
FAILED_SHARE = 0.15
ROWS_PER_USER, FEWEST_USERS, MOST_USERS = 200, 8, 5000
EPOCH = datetime(2025, 6, 1, tzinfo=UTC)
FORMAT = "%Y-%m-%d %H:%M:%S.%f"


def split_statements(sql: str) -> list[str]:
    """Return the statements of *sql*, found with a MySQL tokenizer, without semicolons and outer comments."""
    statements, start, end = [], None, 0
    for token in sqlglot.tokenize(sql, read="mysql"):
        if token.token_type.name == "SEMICOLON":
            if start is not None:
                statements.append(sql[start:end])
            start = None
        else:
            start, end = token.start if start is None else start, token.end + 1
    return [*statements, sql[start:end]] if start is not None else statements


def seed(url: str, rows: int = 0) -> None:
    """
    Make the database that *url* names, when missing, and fill it: users, the nine production rows, *rows* more.

    Of those a few (one in fifty, at most twenty) are pending, all others finished. The same *rows*, the same contents.

    Raises:
        pymysql.err.OperationalError: 1050, the tables are there already.
    """
    _create_database(url)
    session = Session(url, "traffic-seed")
    for statement in split_statements((PLAN_FOLDER / "baseline.sql").read_text(encoding="utf-8")):
        session.run(statement)
    session.run("SET SESSION unique_checks = 0, SESSION foreign_key_checks = 0")  # the rows are ours: no need to look
    dice = random.Random(SEED)
    count = max(FEWEST_USERS, min(rows // ROWS_PER_USER, MOST_USERS))
    users = [cuid(_ms(EPOCH) + number, dice) for number in range(count)]
    stamp = EPOCH.strftime(FORMAT)[:-3]
    people = (f"('{user}','{user}@example.org','{stamp}','{stamp}')" for user in users)
    _insert(session, "INSERT INTO `User` (`id`, `email`, `createdAt`, `updatedAt`) VALUES ", people)
    head = f"INSERT INTO `{TABLE}` ({quoted(V0_COLUMNS)}) "
    _insert(session, f"{head}VALUES ", _jobs(min(rows, FIRST_ROWS), users, dice))
    _multiply(session, head, rows - FIRST_ROWS)
    session.run(f"ANALYZE TABLE `{TABLE}`, `User`")
    session.close()


def _jobs(rows: int, users: list[str], dice: random.Random) -> Iterator[str]:
    for number, status in enumerate(PRODUCTION):
        answer = f"'{cuid(_ms(EPOCH), dice)}'" if number < ANSWERED else "NULL"
        yield _job(number, status, answer, users, dice)
    pending = set(dice.sample(range(rows), min(rows // 50, MOST_PENDING)))
    for number in range(rows):
        status = "pending" if number in pending else "failed" if dice.random() < FAILED_SHARE else "completed"
        yield _job(number + len(PRODUCTION), status, "NULL", users, dice)


def _job(number: int, status: str, answer: str, users: list[str], dice: random.Random) -> str:
    """Return one row as an SQL tuple in the order of V0_COLUMNS; all text is our own and needs no escaping."""
    created = EPOCH + timedelta(seconds=APART_S * number)
    at = [(created + timedelta(milliseconds=ms)).strftime(FORMAT)[:-3] for ms in (0, 750, 9_500)]
    finished = status in ("completed", "failed")
    started = f"'{at[1]}'" if status != "pending" else "NULL"
    ended = f"'{at[2]}'" if finished else "NULL"
    error = "'model timed out after 30 s'" if status == "failed" else "NULL"
    progress = 100 if finished else 0
    return (
        f"('{cuid(_ms(created), dice)}','{dice.choice(users)}','{dice.choice(OLD_TYPES)}',NULL,{answer},'{status}',"
        f"{progress},{error},'{at[0]}',{started},{ended},'{at[0]}','{at[2] if finished else at[0]}')"
    )


def _insert(session: Session, head: str, tuples: Iterator[str]) -> None:
    while batch := list(islice(tuples, STATEMENT_ROWS)):
        session.run(head + ",".join(batch))


def _multiply(session: Session, head: str, rows: int) -> None:
    """Add *rows* more: copies of the first lot's finished rows, each lot later in time and id than the one before."""
    stamp = "LPAD(LOWER(CONV(CONV(SUBSTR(`id`, 2, 8), 36, 10) + {ms}, 10, 36)), 8, '0')"
    later = {"id": f"CONCAT('c', {stamp}, SUBSTR(`id`, 10))"}
    later |= {
        column: f"`{column}` + INTERVAL {{ms}} * 1000 MICROSECOND" for column in V0_COLUMNS if column.endswith("At")
    }
    values = ", ".join(later.get(column, f"`{column}`") for column in V0_COLUMNS)
    source = f"FROM `{TABLE}` WHERE `status` IN ('completed', 'failed') ORDER BY `id` LIMIT {{lot}}"
    lots = range(0, rows, FIRST_ROWS - MOST_PENDING)
    for number, done in enumerate(lots, 1):
        lot, ms = min(lots.step, rows - done), number * (FIRST_ROWS + len(PRODUCTION)) * APART_S * 1000
        session.run(f"{head}SELECT {values} {source}".format(ms=ms, lot=lot))


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _create_database(url: str) -> None:
    where = make_url(url)
    connection = pymysql.connect(
        host=where.host or "127.0.0.1", port=where.port or 3306, user=where.username, password=where.password or ""
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{where.database}`")
