"""`--end-blockers` from the request to the record: the blocker is ended, the run goes on, and the ledger says whom it was."""

from __future__ import annotations

import pymysql
import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RunRequest, Through
from steps import end_blockers
from steps.target import Target
from tests.conftest import BY_COMMAND, App


def test_a_run_that_may_end_blockers_ends_one_and_records_it(database: Target, seeded: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_blockers, "LOOK_EVERY_S", 0)
    blocker = App(database)
    number = blocker.value("SELECT CONNECTION_ID()")
    blocker.run("START TRANSACTION")
    blocker.rows("SELECT id FROM AiAnalysisJob")
    request = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", through=Through.PRE_DEPLOY,
                         settings=[*BY_COMMAND, "end_blockers_after_s=0"], end_blockers=True)

    with actions.desk(request, database) as desk:
        result = actions.run(desk, request, PlainConductor())
        [event] = [event for event in desk.ledger.events() if event["phase"] == "end-blockers"]
        [run] = desk.ledger.runs()

    assert result.outcome == "done"
    assert (event["step"], event["outcome"]) == (f"connection {number}", "ended")
    assert event["detail"]["who"].startswith("root@")
    assert len(event["detail"]["digest"]) == 64
    assert run["options"]["end_blockers"] is True
    with pytest.raises(pymysql.err.MySQLError):
        blocker.run("COMMIT")
    assert "`lifecycleStatus`" in seeded.create_table()
