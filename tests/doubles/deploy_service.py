"""A service that deploys, over HTTP: starts with idempotency keys, statuses that go on with each look, undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.doubles.serving import Request

TOKEN = "the-deploy-services-token"
STAGES = ("queued", "running", "succeeded")


class DeployServiceDouble:
    """What the test sets up and looks at."""

    def __init__(self) -> None:
        self.deploys: dict[str, dict[str, Any]] = {}
        self.by_key: dict[str, str] = {}
        self.ends_as: str = STAGES[-1]
        self.undo_has_its_own_id, self.undo_ends_as = True, STAGES[-1]
        self.refuses: dict[str, int] = {}                          # start, status or undo: status code
        self.faults: list[int] = []                                # answers instead of the next ones; 0 is none
        self.redirect: str | None = None
        self.after_start: Callable[[], bool] = lambda: True        # whether the answer is sent
        self.asked: list[str] = []

    @property
    def now(self) -> str | None:
        """The version that is out: of the last deploy that succeeded."""
        done = [deploy["version"] for deploy in self.deploys.values() if deploy["status"] == "succeeded"]
        return done[-1] if done else None

    def answer(self, request: Request) -> tuple[int, Any] | None:  # noqa: PLR0911  # one for each kind of answer
        body = request.body()
        self.asked.append(f"{request.command} {request.path}")
        if self.redirect:
            request.extra["Location"] = self.redirect
            return 307, {}
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "who are you"}
        if self.faults:
            code = self.faults.pop(0)
            return (code, {"message": "later"}) if code else None
        parts = request.path.strip("/").split("/")
        what = "undo" if parts[-1] == "undo" else "start" if request.command == "POST" else "status"
        if what in self.refuses:
            return self.refuses[what], {"message": f"no {what} for {TOKEN}"}
        if what == "start":
            return self._start(request.headers["Idempotency-Key"], str(body["version"]))
        deploy = self.deploys.get(parts[1])
        if deploy is None:
            return 404, {"message": "no such deploy"}
        return self._undo(request.headers["Idempotency-Key"], parts[1]) if what == "undo" else (200, self._look(deploy))

    def _start(self, key: str, version: str) -> tuple[int, Any] | None:
        if key not in self.by_key:
            self.by_key[key] = f"d{len(self.deploys) + 1}"
            self.deploys[self.by_key[key]] = {"version": version, "status": STAGES[0], "ends": self.ends_as}
        return (201, {"deploy": {"id": self.by_key[key]}}) if self.after_start() else None

    def _undo(self, key: str, number: str) -> tuple[int, Any]:
        if not self.undo_has_its_own_id:
            self.deploys[number].update(status="undoing", ends="undone")
            return 202, {}
        if key not in self.by_key:
            self.by_key[key] = f"d{len(self.deploys) + 1}"
            self.deploys[self.by_key[key]] = {"version": "0", "status": STAGES[0], "ends": self.undo_ends_as}
        return 202, {"deploy": {"id": self.by_key[key]}}

    def _look(self, deploy: dict[str, Any]) -> dict[str, Any]:
        told = {"deploy": {"state": deploy["status"]}, "why": "the canary was sick" if deploy["status"] == "failed" else None}
        deploy["status"] = "running" if deploy["status"] == "queued" else deploy["ends"]
        return {**told, "version": deploy["version"]}
