"""Double claims (F18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steps.checks import Finding, claims
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]


def _with(plan: Plan, **maps: Any) -> Plan:
    return plan.model_copy(update={"sync": (plan.sync[0].model_copy(update=maps),)})


def test_the_shipped_map_warns_and_offers_another(found: Run) -> None:
    [finding] = found(claims)

    assert (finding.severity, finding.subject, finding.accept) == ("warn", "pair status and lifecycleStatus", None)
    assert "lifecycleStatus pending → locked" in finding.what
    assert "status stays pending" in finding.what
    assert 'remove keep_old.locked and set to_old.locked = "processing"' in finding.remedy


def test_the_offered_map_is_clean(found: Run, plan: Plan) -> None:
    better = _with(plan, keep_old={}, to_old={**plan.sync[0].to_old, "locked": "processing"})

    assert found(claims, better) == []


def test_a_value_beside_busy_rows_only_is_clean(found: Run, plan: Plan) -> None:
    assert found(claims, _with(plan, keep_old={"locked": ("processing",)})) == []


def test_another_default_means_another_free_value(found: Run, session: Session, plan: Plan) -> None:
    session.run("ALTER TABLE AiAnalysisJob ALTER status SET DEFAULT 'failed'")

    assert found(claims) == []
    [finding] = found(claims, _with(plan, keep_old={"locked": ("failed",)}))
    assert "map locked in to_old" in finding.remedy
