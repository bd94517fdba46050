"""Eight clients of the application in a process of their own: half write as V0, half as V1, each request timed."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any, Self

import pymysql

from flows.demo.traffic.generations import TABLE

CLIENTS = 8
PAUSE_S = 0.04
WRITES = ("UPDATE {t} SET status = 'processing', progress = progress + 1 WHERE id = %s",
          "UPDATE {t} SET lifecycleStatus = 'running', progress = progress + 1 WHERE id = %s")


@dataclass
class Seen:
    """When each request began and how long it took, in ms; errors by number."""

    took: list[tuple[float, float]] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)

    def p99(self, since: float, until: float) -> float:
        found = sorted(ms for at, ms in self.took if since <= at < until)
        return found[int(len(found) * 0.99)] if found else 0.0

    def longest(self, since: float, until: float) -> float:
        return max((ms for at, ms in self.took if since <= at < until), default=0.0)


class Clients:
    """Use as a context manager; `seen` is there afterwards."""

    def __init__(self, arguments: dict[str, Any], keys: list[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._answer, theirs = context.Pipe(duplex=False)
        self._stop = context.Event()
        self._process = context.Process(target=_work, args=(arguments, keys, self._stop, theirs), daemon=True)
        self.seen = Seen()

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.seen = self._answer.recv()
        self._process.join(10)


def _work(arguments: dict[str, Any], keys: list[str], stop: Event, answer: Connection) -> None:
    seen = Seen()

    def client(number: int) -> None:
        dice = random.Random(number)
        connection = pymysql.connect(**arguments, autocommit=True, read_timeout=120)
        while not stop.is_set():
            began, key = time.time(), dice.choice(keys)
            try:
                with connection.cursor() as cursor:
                    cursor.execute("START TRANSACTION")
                    cursor.execute(f"SELECT id, status FROM {TABLE} WHERE id = %s", (key,))
                    cursor.execute(WRITES[number % 2].format(t=TABLE), (key,))
                    cursor.execute("COMMIT")
            except pymysql.err.Error as error:
                seen.errors.append(int(error.args[0]))
                connection.ping(reconnect=True)
                connection.rollback()
            seen.took.append((began, (time.time() - began) * 1000))
            stop.wait(PAUSE_S)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answer.send(seen)
