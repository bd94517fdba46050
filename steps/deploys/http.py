"""
By HTTP: a service that deploys is asked to start, and for its status until that says done or failed.

Each start carries an idempotency key that is in the ledger before the request is sent: a run that was killed before the answer
came repeats the same key and gets the same deploy, not a second one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from steps import http_json, masking
from steps.deploys.way import Job, patiently, wait_until
from steps.errors import DeployFailed, DeploySystemAway, Stopped
from steps.http_json import Answer
from steps.plan_deploy import DeployService

LONGEST_REQUEST_S = 30.0


class Http:
    """`known` is, by generation, the key of its start and the id that the service gave it."""

    name = "http"

    def __init__(self, plan: DeployService) -> None:
        self.plan = plan

    def puts_out(self, generation: str) -> bool:
        return generation in self.plan.bodies

    def cannot_take_back(self, generation: str, known: dict[str, Any]) -> str | None:
        if self.puts_out(generation):
            return None  # the generation before is started like any other
        if not self.plan.undo_url:
            return f"deploy.http has neither undo_url nor a body for {generation}"
        return None if known else "this tool did not put the new generation out by http"

    def ready(self) -> None:
        self._token()

    def look(self, generation: str, known: dict[str, Any]) -> dict[str, Any]:
        self._token()
        entry = known.get(generation)
        over = (*self.plan.failed, *self.plan.undone)
        if entry and (entry.get("refused") or (entry.get("id") and self._status(entry["id"])[0] in over)):
            return {name: kept for name, kept in known.items() if name != generation}  # that one is over: a new key for a new try
        return known

    def reach(self, known: dict[str, Any]) -> None:
        self._token()
        for name, entry in known.items():
            if name != "undo" and entry.get("id"):
                self._status(entry["id"])

    def put_out(self, job: Job) -> dict[str, Any]:
        entry = self._started(job, job.generation)
        self._follow(job, entry["id"], self.plan.done, self.plan.failed)
        return {"deploy": entry["id"]}

    def take_back(self, job: Job) -> dict[str, Any]:
        """By undo of the latest start, else by a start of the generation before."""
        out = [name for name in job.known if name not in (job.generation, "undo")]
        if not self.plan.undo_url or not out:
            if not self.puts_out(job.generation):
                return {"deploy": "none was started"}
            if job.generation in job.known and job.generation not in self.look(job.generation, job.known):
                job.learn(**{job.generation: {}})  # the last try is over
            return self.put_out(job)
        entry = dict(job.known[out[-1]])
        if entry.get("refused"):
            return {"deploy": "none was started"}
        entry = self._started(job, out[-1])
        undo = self._undo(job, entry)
        if undo == entry["id"]:
            self._follow(job, undo, self.plan.undone, ())  # what is being undone may have been failed before
        else:
            self._follow(job, undo, self.plan.done, self.plan.failed)
        return {"deploy": entry["id"], "undo": undo}

    def _started(self, job: Job, generation: str) -> dict[str, Any]:
        """
        The key and the id of the deploy of *generation*, started if it was not; a start whose answer was lost is repeated.

        Raises:
            DeployFailed: the service refuses; then nothing was started.
        """
        entry = job.known.get(generation) or {"key": f"{job.run_id}-{generation}"}
        if entry.get("id"):
            return dict(entry)
        job.learn(**{generation: {"key": entry["key"]}})
        answer = self._post(self.plan.start_url, self.plan.bodies.get(generation), entry["key"], job)  # type: ignore[call-overload]
        found = answer.at(self.plan.id_at)
        if not answer.good or found is None:
            if not answer.good:
                job.learn(**{generation: {"key": entry["key"], "refused": answer.status}})
            raise self._refused("start", answer, f"answered {answer.status} without {self.plan.id_at}")
        entry = {"key": entry["key"], "id": found}
        job.learn(**{generation: entry})
        return entry

    def _undo(self, job: Job, entry: dict[str, Any]) -> str:
        """The id to follow: that of the undo, or of the deploy itself where the service gives none. One that failed is tried anew."""
        known = job.known.get("undo") or {}
        if known.get("of") != entry["id"]:
            known = {"key": f"{entry['key']}-undo"}
        if last := known.get("id"):
            if last == entry["id"] or self._status(last)[0] not in self.plan.failed:
                return str(last)
            known = {"key": f"{entry['key']}-undo-{job.run_id}"}
        key = known["key"]  # the one in the ledger, where its answer was lost
        job.learn(undo={"of": entry["id"], "key": key})
        answer = self._post(_filled(self.plan.undo_url or "", entry["id"]), None, key, job)
        if not answer.good:
            raise self._refused("undo", answer, "")
        found = answer.at(self.plan.id_at) or entry["id"]
        job.learn(undo={"of": entry["id"], "key": key, "id": found})
        return str(found)

    def _follow(self, job: Job, deploy: str, well: tuple[str, ...], failed: tuple[str, ...]) -> None:
        what = f"deploy {deploy} of {job.generation}"

        def missing() -> str | None:
            status, why = self._status(deploy)
            if status in well:
                return None
            if status in failed:
                raise DeployFailed(what, f"ended as {status}{why}", "see the deploy service")
            return f"its status is {status}{why}"

        wait_until(missing, job.deadline, job.every_s, what, "see the deploy service")

    def _status(self, deploy: str) -> tuple[str, str]:
        answer = patiently(lambda: self._ask("GET", _filled(self.plan.status_url, deploy), LONGEST_REQUEST_S))
        if not answer.good:
            raise self._refused("status", answer, "", Stopped)
        why = answer.at(self.plan.reason_at) if self.plan.reason_at else None
        return answer.at(self.plan.status_at) or "unknown", f": {masking.mask(why)[:300]}" if why else ""

    def _post(self, url: str, body: dict[str, Any] | None, key: str, job: Job) -> Answer:
        return patiently(lambda: self._ask("POST", url, max(1.0, min(LONGEST_REQUEST_S, job.deadline.left_s)), body or {},
                                           {self.plan.idempotency_header: key}))

    def _ask(self, method: str, url: str, timeout_s: float, body: dict[str, Any] | None = None,
             more: dict[str, str] | None = None) -> Answer:
        token = self._token()
        headers = {**(more or {}), **({self.plan.token_header: self.plan.token_prefix + token} if token else {})}
        try:
            return http_json.ask(method, url, timeout_s=timeout_s, headers=headers, body=body, ca_file=self.plan.ca_file)
        except http_json.NoAnswer as nothing:
            raise DeploySystemAway("deploy service", masking.mask(str(nothing)), "run the same command again once it answers; nothing is "
                                   "started twice") from None

    def _token(self) -> str | None:
        """
        The token, read anew for each request, and masked from now on.

        Raises:
            Stopped: it is named in the plan and is not there.
        """
        name = self.plan.token_env or self.plan.token_file
        if not name:
            return None
        try:
            token = os.environ[name] if self.plan.token_env else Path(name).read_text()
        except (KeyError, OSError, UnicodeDecodeError):
            token = ""
        token = token.strip()
        masking.remember(token)
        if not token or not token.isprintable() or not token.isascii():
            raise Stopped("deploy service", f"the token in {name} is missing or no single line of text", "set it where the plan says")
        return token

    @staticmethod
    def _refused(what: str, answer: Answer, otherwise: str, kind: type[DeployFailed | Stopped] = DeployFailed) -> DeployFailed | Stopped:
        if answer.good:
            return kind("deploy service", f"{what} {otherwise}", "correct deploy.http.id_at")
        redirected = " (redirects are not followed)" if answer.status in range(300, 400) else ""
        return kind("deploy service", f"{what} was refused with {answer.status}{redirected}", "correct deploy.http or the token's rights")


def _filled(url: str, deploy: str) -> str:
    return url.replace("{id}", quote(deploy, safe=""))
