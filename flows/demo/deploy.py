"""
The demo's deploy commands, `python -m flows.demo.deploy COMMAND FOLDER [--with-bug]`.

`v1` puts V1 out beside V0, `v0` takes it back, `v2` replaces V0 and V1 by V2, `v1-again` replaces V2 by V1 and V0.

`--with-bug` plants what a faulty release could write: one job whose old side says completed and whose new side says locked.
No trigger can repair that, since locked has no counterpart, so verify must find it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flows.demo.traffic import Fleet
from steps.mysql import VALUE, Session
from steps.target import target_of

URL_NAME = "ROLLOUT_TRAFFIC_URL"
PLANTED = "cplantedbythedemo00000000"
CLIENTS, RATE_PER_S = 5, 40
ROLLING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "v1": (("v1",), ()), "v0": ((), ("v1",)), "v2": (("v2",), ("v1", "v0")), "v1-again": (("v1", "v0"), ("v2",))}


def main() -> None:
    """Entry point; URL from the environment, so that it is in no argument list."""
    generation, folder, with_bug = sys.argv[1], Path(sys.argv[2]), "--with-bug" in sys.argv
    fleet = Fleet(os.environ[URL_NAME], folder)
    comes, goes = ROLLING[generation]
    for each in comes:
        fleet.start(each, clients=CLIENTS, rate_per_s=RATE_PER_S, watched=0)
    for each in goes:
        fleet.stop(each)
    if with_bug:
        plant()


def plant() -> None:
    """Write the faulty job, naming both sides at once."""
    with Session(target_of(os.environ[URL_NAME])) as session:
        session.run("INSERT INTO AiAnalysisJob (id, userId, jobType, status, lifecycleStatus, updatedAt) "
                    f"SELECT {VALUE}, MIN(id), 'active-recall', 'completed', 'locked', UTC_TIMESTAMP(3) FROM `User`", PLANTED)


def correct() -> None:
    """What an engineer does about it: decide the row."""
    with Session(target_of(os.environ[URL_NAME])) as session:
        session.run(f"UPDATE AiAnalysisJob SET lifecycleStatus = 'succeeded' WHERE id = {VALUE}", PLANTED)


if __name__ == "__main__":
    main()
