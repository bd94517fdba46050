"""Names and statements of the sync triggers."""

from __future__ import annotations

import pytest

from steps.sync import SyncTrigger, trigger_name

LONG = "p" + "x" * 60


@pytest.mark.parametrize("event", ["UPDATE", "INSERT"])
def test_a_name_that_would_be_too_long_is_shortened_stably(event: str) -> None:
    name = trigger_name(LONG, event)

    assert len(name) <= 64
    assert name == trigger_name(LONG, event)
    assert name != trigger_name(LONG[:-1] + "y", event)
    assert name.endswith(f"_b{event[0].lower()}")


def test_a_name_that_fits_carries_the_plan() -> None:
    assert [trigger_name("my_plan", event) for event in ("UPDATE", "INSERT")] == ["rollout_my_plan_bu", "rollout_my_plan_bi"]


def test_the_statement_places_the_trigger_behind_a_foreign_one() -> None:
    trigger = SyncTrigger("rollout_p_bu", "UPDATE", "BEGIN\nEND")

    assert trigger.create("t`x", "`a`@`%`", "their trigger") == (
        "CREATE DEFINER=`a`@`%` TRIGGER `rollout_p_bu` BEFORE UPDATE ON `t``x` FOR EACH ROW FOLLOWS `their trigger` BEGIN\nEND")
    assert "FOLLOWS" not in trigger.create("t", "CURRENT_USER", None)
