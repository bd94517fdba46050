"""What the command line says of a copy that would block writes for too long (case C09)."""

from __future__ import annotations

from deploy.percona_toolkit import provide_pt_osc
from tests.cli.calling import PLAN, Call
from tests.conftest import App

BY_TOOL = "COPY by pt-online-schema-change"
STRICT = ("--set", "plan.max_blocked_s=0")


def test_the_plan_says_who_copies_and_a_run_without_the_tool_ends_with_3_and_touches_nothing(here: Call, app: App) -> None:
    before = app.create_table()

    planned = here("plan", PLAN, "--sql", *STRICT, "--set", f"handover.command={provide_pt_osc()}")
    rehearsed = here("rehearse", PLAN, *STRICT, "--set", f"handover.command={provide_pt_osc()}", "--json")
    refused = here("run", PLAN, "--no-prefect", *STRICT, "--set", "handover.command=no-such-tool", "--by", "t", "--reason", "r")

    assert planned.code == 0
    assert BY_TOOL in planned.text
    assert "pt-online-schema-change --alter 'MODIFY COLUMN `jobType` VARCHAR(64) NOT NULL';" in planned.text
    widening = rehearsed.document["stairs"][0]
    assert (widening["step"], widening["up"], widening["down"]) == ("010_widen_job_type", BY_TOOL, BY_TOOL)
    assert refused.code == 3
    assert "[copy-blocks] step 010_widen_job_type" in refused.text
    assert "no-such-tool was not found; install Percona Toolkit 3.7 or newer" in refused.text
    assert app.create_table() == before
