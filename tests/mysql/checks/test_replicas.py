"""Replicas that a pass is to spare, asked before it begins (cases C65, C107). One that really follows: tests/servers/test_replicas.py."""

from __future__ import annotations

import pytest

from steps.checks import replicas
from steps.plan import Plan
from steps.target import Target
from tests.mysql.checks.conftest import Run


def sparing(plan: Plan, *names: str) -> Plan:
    return plan.model_copy(update={"backfill": plan.backfill.model_copy(update={"replicas": names})})


def test_a_plan_without_replicas_on_a_server_without_any_is_clean(found: Run) -> None:
    assert found(replicas) == []


def test_a_replica_without_an_address_is_refused_before_anything_waits_for_it(found: Run, plan: Plan,
                                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPLICA_ONE", raising=False)

    [finding] = found(replicas, sparing(plan, "REPLICA_ONE"))

    assert (finding.severity, finding.accept, finding.subject) == ("refuse", None, "replica REPLICA_ONE")
    assert finding.what.startswith("the environment variable REPLICA_ONE is not set: every pass would wait")


def test_each_address_is_judged_by_itself_and_no_password_is_told(found: Run, plan: Plan, database: Target,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    itself = database.url.render_as_string(hide_password=False)
    monkeypatch.setenv("ITSELF", itself)
    monkeypatch.setenv("NOBODY", database.url.set(port=1, password="hush-hush").render_as_string(hide_password=False))
    monkeypatch.setenv("NO_URL", "replica.example.org")

    said = {finding.subject: finding.what for finding in found(replicas, sparing(plan, "ITSELF", "NOBODY", "NO_URL"))}

    assert said["replica ITSELF"].startswith("is this server itself")
    assert said["replica NOBODY"].startswith("cannot be asked (MySQL error 2003")
    assert said["replica NO_URL"].startswith("cannot be asked (is not a MySQL URL)")
    assert "hush-hush" not in str(said)
    assert str(database.url.password) not in str(said)
