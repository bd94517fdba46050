"""Steps on other tables, beside the ladder: due when their table appears, gone with --drop-added (F9)."""

from __future__ import annotations

from pathlib import Path

import pymysql
import pytest

from steps import leaves
from steps.errors import NoGap, Stopped
from steps.plan import Plan
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, expand, go_back
from tests.plans import SYNC, small

LEAF = '\n[[pre_deploy.leaf]]\nddl = "200_child_fk"\ntable = "child"\ncolumn = "jobId"\n'
CHILD = ("CREATE TABLE child (id INT NOT NULL, jobId VARCHAR(191) COLLATE utf8mb4_unicode_ci NULL, PRIMARY KEY (id)) "
         "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci")
NOT_DUE, DONE, ALREADY_DONE = "not yet due", "done", "already done"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "200_child_fk.up.sql").write_text(
        "ALTER TABLE `child` ADD CONSTRAINT `child_jobId_fkey` FOREIGN KEY (`jobId`) REFERENCES `job` (`id`) ON DELETE CASCADE "
        "ON UPDATE CASCADE")
    (tmp_path / "200_child_fk.down.sql").write_text("ALTER TABLE `child` DROP FOREIGN KEY `child_jobId_fkey`")
    return small(tmp_path, tail=LEAF + SYNC)


def test_a_leaf_waits_for_its_table_and_comes_and_goes(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run("INSERT INTO job (id) VALUES ('a'), ('b')")
    base = job.create_table("job")
    assert expand(opened_on(plan))[4] == NOT_DUE

    job.run("CREATE TABLE child (id INT NOT NULL PRIMARY KEY)")
    assert expand(opened_on(plan))[4] == NOT_DUE  # the table is there, its column is not
    job.run("DROP TABLE child")
    job.run(CHILD)
    job.run("INSERT INTO child VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    child = job.create_table("child")
    assert [leaf.name for leaf in leaves.due(opened_on(plan))] == ["200_child_fk"]

    assert expand(opened_on(plan))[4] == DONE
    assert ("CONSTRAINT `child_jobId_fkey` FOREIGN KEY (`jobId`) REFERENCES `job` (`id`) ON DELETE CASCADE ON UPDATE CASCADE"
            in job.create_table("child"))
    job.run("DELETE FROM job WHERE id = 'a'")
    assert job.rows("SELECT id FROM child ORDER BY id") == [(2,), (3,)]
    with pytest.raises(pymysql.err.IntegrityError):
        job.run("INSERT INTO child VALUES (4, 'nobody')")
    assert expand(opened_on(plan))[4] == ALREADY_DONE

    go_back(opened_on(plan))
    assert (job.create_table("child"), job.create_table("job")) == (child, base)


def test_a_way_back_that_keeps_what_was_added_keeps_the_leaf(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run(CHILD)
    expand(opened_on(plan))

    go_back(opened_on(plan), drop_added=False)

    assert "child_jobId_fkey" in job.create_table("child")
    assert job.triggers() == []


def test_an_index_of_their_own_stays_when_the_leaf_goes(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run(CHILD)
    job.run("ALTER TABLE child ADD INDEX theirs (jobId)")
    child = job.create_table("child")
    expand(opened_on(plan))

    go_back(opened_on(plan))

    assert job.create_table("child") == child


def test_a_foreign_key_of_another_name_counts(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run(CHILD)
    job.run("ALTER TABLE child ADD CONSTRAINT other FOREIGN KEY (jobId) REFERENCES job (id)")
    child = job.create_table("child")

    assert leaves.due(opened_on(plan)) == []
    assert expand(opened_on(plan))[4] == ALREADY_DONE
    assert job.create_table("child") == child


def test_orphans_stop_the_leaf_and_nothing_is_added(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run(CHILD)
    job.run("INSERT INTO child VALUES (1, 'nobody')")
    child = job.create_table("child")

    with pytest.raises(Stopped, match=r"child\.jobId holds keys that job does not have") as raised:
        expand(opened_on(plan))

    assert raised.value.exit_code == 4
    assert job.create_table("child") == child
    job.run("DELETE FROM child")
    assert expand(opened_on(plan))[4] == DONE


def test_a_held_child_stops_the_leaf_and_stalls_nobody(job: App, plan: Plan, opened_on: Opened, clients: Clients) -> None:
    expand(opened_on(plan))
    job.run(CHILD)
    holder = clients()
    holder.run("START TRANSACTION")
    holder.rows("SELECT * FROM child")
    quick = plan.model_copy(update={"plan": plan.plan.model_copy(update={"gap_wait_s": 0})})

    with pytest.raises(NoGap, match="child is held by connection"):
        expand(opened_on(quick))

    assert "child_jobId_fkey" not in job.create_table("child")
    assert holder.run("INSERT INTO child VALUES (1, NULL)") == 1
    holder.run("COMMIT")
    assert expand(opened_on(plan))[4] == DONE
