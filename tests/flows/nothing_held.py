"""Whether a tool that has ended let go of everything: asked of the server, not of the tool."""

from __future__ import annotations

import os
import time

from steps.ownership import lock_name
from steps.scratch import scratch_name
from tests.flows.deploy_stage import Stage


def nothing_held(stage: Stage) -> list[str]:
    """Sessions of other processes (no metadata lock is left without one), named lock, owner, scratch schema; sessions have a moment."""
    until = time.monotonic() + 5
    while (held := _held(stage)) and time.monotonic() < until:
        time.sleep(0.02)
    return held


def _held(stage: Stage) -> list[str]:
    app, scratch = stage.app, scratch_name(stage.target, "job")
    others = ("SELECT PROCESSLIST_ID, PROCESSLIST_INFO FROM performance_schema.threads JOIN performance_schema.session_connect_attrs "
              "USING (PROCESSLIST_ID) WHERE ATTR_NAME = '_pid' AND ATTR_VALUE <> %s AND PROCESSLIST_DB IN (%s, %s)")
    found = [f"session {row}" for row in app.rows(others, os.getpid(), stage.target.schema, scratch)]
    found += [f"schema {row[0]}" for row in app.rows("SHOW DATABASES LIKE %s", scratch.replace("_", r"\_"))]
    if app.value("SELECT IS_USED_LOCK(%s)", lock_name(stage.target.schema, "job")) is not None:
        found.append("the table's lock")
    if app.rows("SHOW TABLES LIKE '\\_rollout\\_owner'"):
        found += [f"owner {row}" for row in app.rows("SELECT actor, pid FROM _rollout_owner")]
    return found
