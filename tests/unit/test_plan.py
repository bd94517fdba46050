"""Impossible combinations are refused by the model, and the identity covers what is fixed at the first run."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steps.plan import Plan

PAIR: dict[str, Any] = {"old": "status", "new": "state", "to_new": {"a": "x", "b": "y"}, "to_old": {"x": "a", "y": "b"}}


def plan(**changes: Any) -> Plan:
    data: dict[str, Any] = {"plan": {"id": "p", "table": "t"}, "pre_deploy": {"step": [{"ddl": "010_a"}]}, "sync": [PAIR]}
    for dotted, value in changes.items():
        node = data
        *tables, last = dotted.split("__")
        for table in tables:
            node = node.setdefault(table, {})
        node[last] = value
    return Plan.model_validate(data)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"pre_deploy__step": [{}]}, "a step has either `ddl` or `rename`"),
    ({"pre_deploy__step": [{"ddl": "010_a", "rename": {"from": "a", "to": "b"}}]}, "a step has either `ddl` or `rename`"),
    ({"pre_deploy__step": []}, "at least 1 item"),
    ({"pre_deploy__step": [{"ddl": "010_a"}, {"ddl": "010_a"}]}, "two steps have the same name"),
    ({"pre_deploy__leaf": [{"ddl": "010_a", "table": "u", "column": "c"}]}, "two steps have the same name"),
    ({"pre_deploy__step": [{"ddl": "a", "after": "first_pass"}, {"ddl": "b"}]}, "come last: the ladder is climbed in order"),
    ({"pre_deploy__step": [{"ddl": "../010_a"}]}, "should match pattern"),
    ({"pre_deploy__step": [{"ddl": "a/b"}]}, "should match pattern"),
    ({"sync": [{**PAIR, "to_new": {}}]}, "to_new is empty"),
    ({"sync": [{**PAIR, "to_new": {"a": "x", "b": "z"}}]}, "to_new maps 'b' to 'z', which to_old does not know"),
    ({"sync": [{**PAIR, "to_old": {"x": "a", "y": "a"}}]}, "'b' becomes 'y' and comes back as 'a', which is another value"),
    ({"sync": [{**PAIR, "to_old": {"x": "a", "y": "b", "z": "c"}}]}, "to_old maps 'z' to 'c', which to_new does not know"),
    ({"sync": [{**PAIR, "keep_old": {"x": ["a"]}}]}, r"keep_old and to_old both speak of \['x'\]"),
    ({"sync": [{**PAIR, "keep_old": {"z": ["c"]}}]}, r"keep_old allows \['c'\], which to_new does not know"),
    ({"sync": [PAIR, {**PAIR, "new": "STATUS", "old": "other"}]}, "a column is in two pairs"),
    ({"sync": [{**PAIR, "new": "Status"}]}, "a column is in two pairs"),
    ({"pre_deploy__step": [{"rename": {"from": "Status", "to": "phase"}}]}, "a column is in two pairs"),
    ({"pre_deploy__step": [{"rename": {"from": "a", "to": "b"}}, {"rename": {"from": "c", "to": "B"}}]}, "a column is in two pairs"),
    ({"pre_deploy__step": [{"rename": {"from": "a", "to": "a"}}]}, "a column is in two pairs"),
    ({"deploy__how": "command"}, "needs deploy.command"),
    ({"plan__path": "fast"}, "should be 'zero_downtime' or 'adr'"),
    ({"plan__id": "Not Good"}, "should match pattern"),
    ({"plan__table": "x" * 65}, "at most 64 characters"),
    ({"plan__max_stall_ms": 99}, "greater than or equal to 100"),
    ({"plan__typo": 1}, "Extra inputs are not permitted"),
    ({"verify__on_fail": "ignore"}, "should be 'pre_deploy', 'v0' or 'stop'"),
])
def test_an_impossible_plan_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        plan(**changes)


def test_every_way_in_which_a_pair_agrees_is_in_agreeing() -> None:
    both = plan(sync=[{**PAIR, "to_old": {"x": "a", "y": "b", "gone": "b"}, "keep_old": {"busy": ["a", "b"]}}])

    assert set(both.sync[0].agreeing) == {("a", "x"), ("b", "y"), ("b", "gone"), ("a", "busy"), ("b", "busy")}


def test_many_old_values_may_share_a_new_one_when_they_come_back_as_one_of_them() -> None:
    shared = plan(sync=[{**PAIR, "to_new": {"a": "x", "b": "x"}, "to_old": {"x": "a"}}])

    assert shared.sync[0].agreeing == (("a", "x"), ("b", "x"))


def test_a_command_alone_deploys_by_command() -> None:
    assert (plan(deploy__command="true").deploy.how, plan().deploy.how) == ("command", "manual")


@pytest.mark.parametrize(("change", "changed"), [
    ({"plan__table": "u"}, "table"),
    ({"pre_deploy__step": [{"ddl": "020_b"}]}, "steps"),
    ({"pre_deploy__leaf": [{"ddl": "200_x", "table": "u", "column": "c"}]}, "leaves"),
    ({"sync": []}, "sync"),
    ({"cleanup__drop": ["status"]}, "drop"),
    ({"sql_text": {"010_a.up.sql": "ALTER TABLE t ADD a INT"}}, "sql"),
])
def test_the_identity_changes_with_what_is_fixed_at_the_first_run(change: dict[str, Any], changed: str) -> None:
    one, other = plan(), plan(**change)

    assert [key for key in one.identity() if one.identity()[key] != other.identity()[key]] == [changed]
    assert one.identity_hash() != other.identity_hash()


@pytest.mark.parametrize("change", [
    {"plan__max_stall_ms": 500}, {"plan__title": "x"},
    {"deploy__command": "true"}, {"backfill__target_ms": 50}, {"verify__on_fail": "stop"}])
def test_operational_keys_leave_the_identity_alone(change: dict[str, Any]) -> None:
    assert plan(**change).identity_hash() == plan().identity_hash()


def test_a_plan_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        plan().plan.table = "u"
