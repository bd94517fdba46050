"""
V0 on another stack, `python -m tests.applications.sqlalchemy_v0 WATCHED_PID`: SQLAlchemy's ORM, with its own habits.

The same routes and answers as application.mjs. The habits: an identity map, so a transaction reads a job before it writes it and
writes only what changed; conditional writes as UPDATE … WHERE with the row count; rows read anew after the commit; PyMySQL's text protocol.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sqlalchemy import DateTime, Engine, String, Text, create_engine, delete, select, update
from sqlalchemy.dialects.mysql import DATETIME
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from flows.demo.traffic.process import alive
from tests.applications.sqlalchemy_habits import HABITS, Habit

Milliseconds = DateTime().with_variant(DATETIME(fsp=3), "mysql")


class Base(DeclarativeBase):
    """SQLAlchemy's registry."""


class AiAnalysisJob(Base):
    """The old table, all thirteen columns by name."""

    __tablename__ = "AiAnalysisJob"
    id: Mapped[str] = mapped_column(String(191), primary_key=True)
    userId: Mapped[str] = mapped_column(String(191))  # noqa: N815
    jobType: Mapped[str] = mapped_column(String(32))  # noqa: N815
    sessionId: Mapped[str | None] = mapped_column(String(191))  # noqa: N815
    answerId: Mapped[str | None] = mapped_column(String(191))  # noqa: N815
    status: Mapped[str] = mapped_column(String(32), default="pending")
    progress: Mapped[int] = mapped_column(default=0)
    errorMessage: Mapped[str | None] = mapped_column(Text)  # noqa: N815
    queuedAt: Mapped[datetime | None] = mapped_column(Milliseconds)  # noqa: N815
    startedAt: Mapped[datetime | None] = mapped_column(Milliseconds)  # noqa: N815
    completedAt: Mapped[datetime | None] = mapped_column(Milliseconds)  # noqa: N815
    createdAt: Mapped[datetime] = mapped_column(Milliseconds)  # noqa: N815
    updatedAt: Mapped[datetime] = mapped_column(Milliseconds)  # noqa: N815


COLUMNS = [column.name for column in AiAnalysisJob.__table__.columns]
Reply = dict[str, Any]


def as_json(job: AiAnalysisJob | None) -> dict[str, Any] | None:
    """Dates as ISO 8601 in UTC."""
    values = job and {name: getattr(job, name) for name in COLUMNS}
    return values and {name: f"{value.isoformat(timespec='milliseconds')}Z" if isinstance(value, datetime) else value
                       for name, value in values.items()}


def as_columns(data: Reply) -> Reply:
    """The same backwards."""
    return {name: datetime.fromisoformat(value).replace(tzinfo=None) if name.endswith("At") and value else value
            for name, value in data.items()}


class Repository:
    """What the routes do, each in a session and a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def get(self, path: str, query: dict[str, list[str]]) -> Reply:
        jobs, statement = AiAnalysisJob, select(AiAnalysisJob)
        with Session(self.engine) as session:
            if path.startswith("/jobs/") and path != "/jobs/":
                return {"row": as_json(session.get(jobs, unquote(path.removeprefix("/jobs/"))))}
            if "waiting" in query:
                statement = statement.where(jobs.status == "pending", jobs.userId.in_(query["user"]), jobs.jobType != "habit")
                statement = statement.order_by(jobs.createdAt).limit(5)
            elif "userId" in query:
                statement = statement.where(jobs.userId == query["userId"][0]).order_by(jobs.createdAt.desc()).limit(20)
            else:
                statement = statement.limit(1)
            return {"rows": [as_json(job) for job in session.scalars(statement)]}

    def post(self, path: str, body: Reply) -> Reply:
        if path.startswith("/habits/"):
            return self._by_habit(HABITS[path.removeprefix("/habits/")], body)
        with Session(self.engine) as session:
            job = AiAnalysisJob(**as_columns(body["data"]))
            session.add(job)
            session.commit()
            return {"done": True, "row": as_json(job)}

    def patch(self, job: str, body: Reply) -> Reply:
        data, where = as_columns(body["data"]), body.get("where")
        with Session(self.engine) as session:
            if where:
                return self._conditionally(session, update(AiAnalysisJob).values(**data), job, where)
            found = session.get_one(AiAnalysisJob, job)
            for name, value in data.items():
                setattr(found, name, value)
            session.flush()
            held = time.monotonic_ns()
            session.commit()
            return {"done": True, "held": str(held)}

    def delete(self, job: str, body: Reply) -> Reply:
        with Session(self.engine) as session:
            return self._conditionally(session, delete(AiAnalysisJob), job, body["where"])

    def _by_habit(self, habit: Habit, body: Reply) -> Reply:
        columns = {"rows": [as_columns(row) for row in body.get("rows", [])], "steps": [as_columns(step) for step in body.get("steps", [])],
                   "data": as_columns(body.get("data", {}))}
        with Session(self.engine) as session:
            count = habit(session, AiAnalysisJob, body | columns)
            held = time.monotonic_ns()
            session.commit()
            return {"done": count > 0, "held": str(held)}

    @staticmethod
    def _conditionally(session: Session, statement: Any, job: str, where: Reply) -> Reply:
        """Read first, as the ORM's users do, so that the transaction has a snapshot; then write on condition."""
        session.get(AiAnalysisJob, job)
        one = statement.where(AiAnalysisJob.id == job).filter_by(**where).execution_options(synchronize_session=False)
        result: Any = session.execute(one)
        held = time.monotonic_ns()
        session.commit()
        return {"done": result.rowcount == 1, "held": str(held)}


class Handler(BaseHTTPRequestHandler):
    """One request; keep-alive."""

    protocol_version = "HTTP/1.1"
    repository: Repository

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer(lambda: self.repository.get(parts.path, parse_qs(parts.query, keep_blank_values=True)))

    def do_POST(self) -> None:
        self._write(self.repository.post)

    def do_PATCH(self) -> None:
        self._write(self.repository.patch)

    def do_DELETE(self) -> None:
        self._write(self.repository.delete)

    def log_message(self, *_: object) -> None:
        """Requests are the driver's to count."""

    def _write(self, act: Callable[[str, Reply], Reply]) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self._answer(lambda: act(unquote(self.path.removeprefix("/jobs/")), body))

    def _answer(self, act: Callable[[], Reply]) -> None:
        status = 200
        try:
            reply = act()
        except DBAPIError as error:
            number = error.orig.args[0] if error.orig else None
            status, reply = 500, {"code": str(number or type(error).__name__), "mysql": number, "said": str(error.orig)[-300:]}
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.send_header("x-generation", "v0")
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Serve until SIGTERM, or until the watched process is gone."""
    engine = create_engine(make_url(os.environ["APPLICATION_DATABASE_URL"]).set(drivername="mysql+pymysql"), pool_size=8)
    Handler.repository = Repository(engine)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201  # whoever started us waits for it
    watched = int(sys.argv[1])
    while alive(watched):
        time.sleep(0.5)


if __name__ == "__main__":
    main()
