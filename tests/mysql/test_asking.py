"""What the server says to each statement on the clone: algorithm, whether the table is built anew, what others meet, and why not better."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steps import asking
from steps.clone import Clone
from steps.errors import ConnectionLost, LockTimeout, RolloutError, StatementFailed
from steps.ladder import Way
from steps.mysql import Session, quote
from steps.rehearsal import DOWN, UP, rehearse
from steps.target import Target
from tests.conftest import App
from tests.plans import ADD_STATE, Ddl, small

STEPS = {
    "widen": ("MODIFY COLUMN `status` VARCHAR(64) NOT NULL DEFAULT 'pending'",
              "MODIFY COLUMN `status` VARCHAR(32) NOT NULL DEFAULT 'pending'"),
    "index": ("ADD INDEX `i` (`status`)", "DROP INDEX `i`"),
    "strict": ("MODIFY COLUMN `doneAt` DATETIME(3) NOT NULL DEFAULT '2001-01-01'", "MODIFY COLUMN `doneAt` DATETIME(3) NULL"),
    "text": ("ADD FULLTEXT INDEX `f` (`note`)", "DROP INDEX `f`"),
}


@pytest.mark.parametrize("trouble", [LockTimeout("ALTER", "MySQL error 1205", "", 1205), ConnectionLost("ALTER", "gone", "", 2013),
                                     StatementFailed("ALTER", "MySQL error 1114", "", 1114)], ids=lambda error: str(error.errno))
def test_no_answer_is_not_taken_for_a_no(session: Session, empty: Target, job: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         trouble: StatementFailed) -> None:
    """Else a slower algorithm would be frozen into the ladder, or the plan refused, for what the server suffers just now (case C06)."""
    asked: list[str] = []

    def unanswered(_clone: Clone, way: Way) -> None:
        asked.append(way.algorithm)
        raise trouble

    monkeypatch.setattr(asking, "_send", unanswered)

    told = {LockTimeout: "could not look at a live table in time", ConnectionLost: "gone", StatementFailed: "1114"}
    with pytest.raises(RolloutError, match=told[type(trouble)]):
        rehearse(session, empty, small(tmp_path))

    assert asked == ["INSTANT"]
    assert session.query("SHOW DATABASES LIKE '\\_rollout\\_rehearsal%'") == []


@pytest.mark.parametrize(("step", "up", "down"), [
    ("widen", ("COPY", True, "shared", None), ("COPY", True, "shared", None)),
    ("index", ("INPLACE", False, "none", None), ("INPLACE", False, "none", None)),
    ("strict", ("INPLACE", True, "none", None), ("INPLACE", True, "none", None)),
    ("text", ("COPY", True, "shared", "shared"), ("INPLACE", False, "none", None)),
])
def test_every_way_is_told_as_the_server_took_it(session: Session, empty: Target, job: App, tmp_path: Path, step: str,
                                                 up: tuple[object, ...], down: tuple[object, ...]) -> None:
    found = rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, Ddl(f"020_{step}", *STEPS[step])]))

    stair = found.ladder.stairs[1]
    for side, way, expected in ((UP, stair.up, up), (DOWN, stair.down, down)):
        learned = found.learned[stair.name, side]
        assert (way.algorithm, learned.rebuilds, learned.lock, learned.in_place_lock) == expected
        assert learned.clone_ms > 0
    added = found.learned["010_add_state", UP]
    assert (added.rebuilds, added.lock, added.refused) == (False, "metadata", {})


def test_the_servers_reason_against_a_better_way_is_kept(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    found = rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, Ddl("020_widen", *STEPS["widen"])]))

    refused = found.learned["020_widen", UP].refused
    assert set(refused) == {"INSTANT", "INPLACE"}
    assert "Cannot change column type INPLACE" in refused["INPLACE"]


@pytest.fixture
def unseeing(session: Session, empty: Target) -> Iterator[Target]:
    """An account that may do everything but look into InnoDB's own tables."""
    name = f"u{session.connection_id}"
    session.run(f"CREATE USER {quote(name)}@'%' IDENTIFIED BY 'secret'")
    session.run(f"GRANT CREATE, DROP, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE, TRIGGER, REFERENCES ON *.* TO {quote(name)}@'%'")
    yield Target(empty.url.set(username=name, password="secret"))
    session.run(f"DROP USER {quote(name)}@'%'")


def test_where_nobody_may_see_it_a_rebuild_is_unknown_and_never_denied(unseeing: Target, job: App, tmp_path: Path) -> None:
    steps = [ADD_STATE, *(Ddl(f"020_{name}", *STEPS[name]) for name in ("strict", "widen"))]
    with Session(unseeing) as live:
        found = rehearse(live, unseeing, small(tmp_path, steps=steps, tail=""))  # without triggers, which need more

    assert [found.learned[stair.name, UP].rebuilds for stair in found.ladder.stairs] == [False, None, True]
