"""A backup that stops all DDL is told with who makes it, whichever lock it takes, and nothing else is lost of the report (case C05)."""

from __future__ import annotations

import pytest

from steps.target import Target
from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import App


@pytest.mark.parametrize("lock", ["LOCK INSTANCE FOR BACKUP", "FLUSH TABLES WITH READ LOCK"])
def test_a_backup_is_named_by_check_and_run_and_nothing_is_touched(here: Call, seeded: App, empty: Target, lock: str) -> None:
    before, backup = standing(seeded), App(empty)
    backup.run(lock)
    try:
        answers = [here("check", PLAN), here("run", PLAN, "--no-prefect", *DEPLOYED),
                   here("run", PLAN, "--no-prefect", "--accept", "blockers", *DEPLOYED)]
    finally:
        backup.close()

    for answer in answers:
        assert answer.code == 3, answer.text
        assert f"connection {backup.connection.thread_id()}" in answer.text
    assert "[claims]" in answers[0].text
    assert "[rehearsal]" in answers[2].text
    assert standing(seeded) == before
