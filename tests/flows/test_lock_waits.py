"""Whoever waits in vain for a lock is told who has it and what to do, before a run begins and at its ledger too (case C05)."""

from __future__ import annotations

import pytest

from tests.conftest import App
from tests.flows.deploy_stage import Stage
from tests.flows.nothing_held import nothing_held

HELD_UP_S = 60


@pytest.mark.parametrize("held", ["FLUSH TABLES WITH READ LOCK", "LOCK TABLES _rollout_run READ", "LOCK TABLES _rollout_owner READ",
                                  "LOCK TABLES _rollout_event READ"])
def test_who_holds_the_server_or_the_ledger_is_named_with_the_way_on(stage: Stage, held: str) -> None:
    stage.plan(command="true", rollback_command="true")
    stage.run()
    holder = App(stage.target)
    number = holder.value("SELECT CONNECTION_ID()")
    holder.run(held)
    try:
        process = stage.process("rollback", "--to", "v0")
        output, _ = process.communicate(timeout=HELD_UP_S)
    finally:
        holder.close()

    said = " ".join(output.split())
    assert process.returncode == 4, output
    assert f"held by connection {number} (" in said
    assert "everything before it stands; run the same command again once it is free" in said
    assert "CREATE TABLE" not in output
    assert (stage.phase()[0], len(stage.app.triggers())) == ("done", 2)
    assert nothing_held(stage) == []
    assert stage.back().outcome == "done"
