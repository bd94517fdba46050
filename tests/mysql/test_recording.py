"""What stopped a step comes out as it was, also when it cannot be written down; what went well is never lost in silence."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from steps.errors import ConnectionLost, NoGap
from steps.phase import Phase
from steps.rollout import Rollout
from tests.conftest import App
from tests.mysql.conftest import Opened
from tests.plans import small


@pytest.fixture
def rollout(opened_on: Opened, tmp_path: Path, job: App) -> Rollout:
    found = opened_on(small(tmp_path))
    found.ledger.create()
    return found


def cut_off(rollout: Rollout, client: App, error: Exception | None, *, later: bool) -> None:
    """A step in which the ledger's connection is lost and then *error* comes."""
    with rollout.recorded_later() if later else nullcontext(), rollout.timed(Phase.PRE_DEPLOY, "a step"):
        client.run(f"KILL {rollout.ledger.session.connection_id}")
        if error:
            raise error


@pytest.mark.parametrize("later", [False, True])
def test_the_error_that_stopped_it_is_told_and_not_that_the_ledger_was_away(rollout: Rollout, job: App, later: bool) -> None:
    with pytest.raises(NoGap, match="never free"):
        cut_off(rollout, job, NoGap("table job", "was never free"), later=later)


@pytest.mark.parametrize("later", [False, True])
def test_a_step_that_went_well_and_could_not_be_written_down_stops_the_run(rollout: Rollout, job: App, later: bool) -> None:
    with pytest.raises(ConnectionLost):
        cut_off(rollout, job, None, later=later)

    assert job.rows("SELECT step FROM _rollout_event") == []
