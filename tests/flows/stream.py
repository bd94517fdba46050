"""What Prefect's event stream has, and a receiver on loopback for what automations send."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from steps import waits
from steps.target import ENVIRONMENT
from tests.doubles.serving import Request, serving
from tests.flows.deploy_stage import Stage

WITHIN_S, NOTIFIED_WITHIN_S = 30.0, 90.0
LOOK_EVERY_S = 0.2


def as_a_worker_has_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The stage's database in the environment, a deploy by command, and events waited for however slow a busy machine takes them."""
    from flows import events

    monkeypatch.setattr(events, "TELL_WITHIN_S", 60)
    monkeypatch.setenv(ENVIRONMENT, stage.target.url.render_as_string(hide_password=False))
    stage.plan(command="true", rollback_command="true")
    return stage


def told(prefix: str, resource: str, wanted: int) -> list[dict[str, Any]]:
    """The events whose name begins with *prefix*, of resource *resource*, oldest first; waits until there are *wanted*."""
    from prefect.client.orchestration import get_client

    until_s = waits.now_s() + WITHIN_S
    with get_client(sync_client=True) as client:
        while True:
            asked = {"filter": {"event": {"prefix": [prefix]}, "resource": {"id": [resource]}, "order": "ASC",
                                "occurred": {"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"}}, "limit": 50}
            found: list[dict[str, Any]] = client.request("POST", "/events/filter", json=asked).json()["events"]
            if len(found) >= wanted or waits.now_s() > until_s:
                return found
            threading.Event().wait(LOOK_EVERY_S)


class Receiver:
    """Who is notified: what came, by path."""

    def __init__(self) -> None:
        self.came: list[tuple[str, Any]] = []
        self.heard = threading.Condition()

    def handle(self, request: Request) -> tuple[int, Any]:
        with self.heard:
            self.came.append((request.path, request.body()))
            self.heard.notify_all()
        return 200, "ok"

    def wait_for(self, path: str, words: str, within_s: float = NOTIFIED_WITHIN_S) -> dict[str, Any]:
        """The first document on *path* whose text holds *words*; fails when none came in time."""
        def found() -> dict[str, Any] | None:
            return next((body for where, body in self.came if where == path and words in str(body)), None)

        with self.heard:
            self.heard.wait_for(found, within_s)
            body = found()
        assert body is not None, self.came
        return body


@contextmanager
def receiving() -> Iterator[tuple[str, Receiver]]:
    """Its address and what comes."""
    receiver = Receiver()
    with serving(receiver.handle) as address:
        yield address, receiver
