"""The jobs as an application of one generation serves them over HTTP: what it acknowledges is on record for the judge."""

import http.client
import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from flows.demo.traffic.failure import ApplicationFailedError
from flows.demo.traffic.generations import GENERATIONS, V0_COLUMNS, V1_COLUMNS, Generation
from flows.demo.traffic.journal import Journal, Values
from flows.demo.traffic.model import Model
from flows.demo.traffic.session import Row

MOMENTS = {column for column in (*V0_COLUMNS, *V1_COLUMNS) if column.endswith("At")} | {"lockUntil"}
TIMEOUT_S = 60
Planned = tuple[str, str, Values, Values]  # job, kind, values, marks
OK = 200


class HttpModel(Model):
    """
    The application at the base URL *url*, over one kept connection. Its answers are JSON: `row` or `rows`, after a write
    also `done` and, where others may write the same row, `held`; a failure is 500 with `code` and `mysql`.

    A write is on record before it is asked for. It is taken back when the application says that no row fitted, or when the
    server answered with an error; a connection lost without an answer leaves it of unknown outcome, one that is refused does not.
    The header `x-generation` says who answered, if it may be another generation than asked: the answer is judged as that one's.
    """

    def __init__(
        self, generation: Generation, url: str, journal: Journal, wrong: Callable[[str, str], None]
    ) -> None:
        super().__init__(generation, wrong)
        self._journal = journal
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)

    def find(self, job: str) -> Row | None:
        """`GET /jobs/ID`."""
        begun = time.monotonic_ns()
        row = _row(self._ask("GET", f"/jobs/{quote(job)}")["row"])
        self._journal.saw(self.answered.name, job, begun, row[self.answered.column("state")] if row else None)
        return row

    def waiting(self, users: tuple[str, ...]) -> list[Row]:
        """`GET /jobs/?waiting=&user=…&user=…`."""
        return self._many([("waiting", ""), *(("user", user) for user in users)])

    def listed(self, user: str, job_type: str) -> list[Row]:
        """`GET /jobs/?userId=…&jobType=…`."""
        return self._many([("userId", user), ("jobType", job_type)])

    def create(self, job: str, values: Values, *, queued: bool = False) -> None:
        """`POST /jobs/`."""
        data = {"id": job, **self.generation.physical(values)}
        self._write("POST", job, values, {"data": data}, {"queued": queued})

    def update(
        self, job: str, values: Values, where: Values | None = None, *, queued: bool = False, executed: bool = False
    ) -> bool:
        """`PATCH /jobs/ID`."""
        body = {"data": self.generation.physical(values)} | ({"where": self.generation.physical(where)} if where else {})
        return self._write("PATCH", job, values, body, {"queued": queued, "executed": executed})

    def delete(self, job: str, where: Values) -> bool:
        """`DELETE /jobs/ID`."""
        return self._write("DELETE", job, {}, {"where": self.generation.physical(where)}, {})

    def recover(self) -> None:
        """Drop the connection, whose answer may still be on its way."""
        self._connection.close()

    def close(self) -> None:
        """Safe to repeat; the next request connects anew."""
        self._connection.close()

    def _many(self, query: list[tuple[str, str]]) -> list[Row]:
        rows = (_row(row) for row in self._ask("GET", f"/jobs/?{urlencode(query)}")["rows"])
        return [row for row in rows if row]

    def _write(self, method: str, job: str, values: Values, body: dict[str, Any], marks: Values) -> bool:
        kind = {"POST": "create", "PATCH": "update", "DELETE": "delete"}[method]
        path = f"/jobs/{quote(job) if kind != 'create' else ''}"
        reply = self.asked_on_record(method, path, body, [(job, kind, values, marks)])
        if reply and reply.get("row"):
            self.check(job, _row(reply["row"]), values)
        return reply is not None

    def asked_on_record(self, method: str, path: str, body: dict[str, Any], writes: list[Planned]) -> dict[str, Any] | None:
        """Ask for the *writes* of one transaction, in their order; return the answer, or None when no row fitted."""
        self.answered = self.generation
        if self._connection.sock is None:
            self._connection.connect()  # who never reached the application has written nothing
        numbers = [self._journal.intend(self.generation.name, *write) for write in writes]
        try:
            reply = self._ask(method, path, body)
        except ApplicationFailedError as error:
            if not error.unknown:
                self._withdraw(numbers)
            raise
        if not reply["done"]:
            self._withdraw(numbers)
            return None
        for later, number in enumerate(numbers):
            self._journal.acknowledge(number, int(reply["held"]) + later if "held" in reply else None, self.answered.name)
        return reply

    def _withdraw(self, numbers: list[int]) -> None:
        for number in numbers:
            self._journal.withdraw(number)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self.answered = self.generation
        try:
            self._connection.request(method, path, _as_json(body), {"content-type": "application/json"})
            response = self._connection.getresponse()
            reply: dict[str, Any] = json.loads(response.read())
        except (http.client.HTTPException, json.JSONDecodeError) as error:
            raise ConnectionResetError(str(error)) from error
        self.answered = GENERATIONS[response.headers.get("x-generation", self.generation.name)]
        if response.status != OK:
            raise ApplicationFailedError(str(reply["code"]), reply["mysql"], str(reply["said"]))
        return reply


def _as_json(body: dict[str, Any] | None) -> str | None:
    if body is None:
        return None
    data = {name: json.loads(value) if name == "validatedOutput" and value else value for name, value in body.get("data", {}).items()}
    return json.dumps({**body, "data": data}, default=lambda moment: f"{moment.isoformat(timespec='milliseconds')}Z")


def _row(found: Row | None) -> Row | None:
    """The application's JSON as the driver would give the row: moments without time zone, JSON columns as text."""
    if found is None:
        return None
    row = {
        name: datetime.fromisoformat(value).replace(tzinfo=None) if name in MOMENTS and value else value
        for name, value in found.items()
    }
    if row.get("validatedOutput") is not None:
        row["validatedOutput"] = json.dumps(row["validatedOutput"])
    return row
