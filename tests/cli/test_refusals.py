"""What a DBA would refuse: `run` ends with 3, names the object, and leaves every table, trigger and row as it was."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import SHIPPED, App

RUN = ("--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
STATE = "CREATE TABLE state (id VARCHAR(191) PRIMARY KEY) COLLATE utf8mb4_unicode_ci"


@dataclass(frozen=True)
class Situation:
    """SQL that brings the database into it, a step of the plan as it would be instead, and what must be told."""

    told: tuple[str, ...]
    before: tuple[str, ...] = ()
    step: str = ""
    up: str = ""


ON_THE_TABLE = {
    "zero dates under a copy (C25)": Situation(
        ("[zero-dates] column AiAnalysisJob.due", "holds 9 dates"),
        ("ALTER TABLE AiAnalysisJob ADD COLUMN due DATETIME NULL", "SET SESSION sql_mode = ''", "UPDATE AiAnalysisJob SET due = 0")),
    "values that no map knows (C46, C48)": Situation(
        ("[statuses] column AiAnalysisJob.status", "'Completed ' (9 rows)"), ("UPDATE AiAnalysisJob SET status = 'Completed '",)),
    "a comment that the widening would lose (C30)": Situation(
        ("[statements] column AiAnalysisJob.jobType", "loses its comment", "lost-attributes"),
        ("ALTER TABLE AiAnalysisJob MODIFY jobType VARCHAR(32) NOT NULL COMMENT 'kind'",)),
    "a name of a foreign key that is taken (C20)": Situation(
        ("[foreign-keys] step 080_add_parent_job_fk", "a name that child of this schema has already (1826)"),
        (("CREATE TABLE child (a VARCHAR(191), CONSTRAINT AiAnalysisJob_parentJobId_fkey FOREIGN KEY (a) REFERENCES `User` (id)) "
         "COLLATE utf8mb4_unicode_ci"),)),
    "a FULLTEXT index that was there once (C13)": Situation(
        ("[instant] table AiAnalysisJob", "once had a FULLTEXT index"),
        ("ALTER TABLE AiAnalysisJob ADD FULLTEXT ft (errorMessage)", "ALTER TABLE AiAnalysisJob DROP INDEX ft")),
    "a trigger of an account that is gone": Situation(
        ("[definers] trigger bu", "an account that does not exist"),
        ("CREATE USER IF NOT EXISTS 'refused'@'%'", ("CREATE DEFINER = 'refused'@'%' TRIGGER bu BEFORE UPDATE ON AiAnalysisJob "
         "FOR EACH ROW SET NEW.progress = 1"), "DROP USER 'refused'@'%'")),
    "triggers of pt-online-schema-change": Situation(
        ("[leftovers] trigger pt_osc_x_del",),
        ("CREATE TRIGGER pt_osc_x_del AFTER DELETE ON AiAnalysisJob FOR EACH ROW SET @x = 1",)),
    "indexes that cleanup would narrow (C44)": Situation(
        ("[dependents] index one:", "[dependents] index two:", "narrow it silently"),
        ("ALTER TABLE AiAnalysisJob ADD INDEX one (sessionId, createdAt), ADD INDEX two (answerId, createdAt)",)),
    "a foreign key on a column that cleanup drops (C44)": Situation(
        ("[dependents] foreign key of_session", "1828"),
        (STATE, "ALTER TABLE AiAnalysisJob ADD CONSTRAINT of_session FOREIGN KEY (sessionId) REFERENCES state (id)")),
    "a CHECK that would vanish without a word (C38)": Situation(
        ("[dependents] check ck2", "names status"), ("ALTER TABLE AiAnalysisJob ADD CONSTRAINT ck2 CHECK (status <> '')",)),
    "a generated column and a functional index (C37)": Situation(
        ("[dependents] generated column dur", "[dependents] index fi"),
        ("ALTER TABLE AiAnalysisJob ADD COLUMN dur INT AS (TIMESTAMPDIFF(SECOND, createdAt, completedAt)) VIRTUAL",
         "ALTER TABLE AiAnalysisJob ADD INDEX fi ((DATE(completedAt)))")),
}
IN_THE_PLAN = {
    "a rename hidden in a step (C88)": Situation(
        ("[statements] column AiAnalysisJob.progress", "is renamed to percent"), step="010_widen_job_type",
        up="CHANGE progress percent INT NOT NULL DEFAULT 0"),
    "a column that old code would have to supply (C31)": Situation(
        ("[statements] column AiAnalysisJob.extra", "1364", "[rehearsal] step 050_add_credentials_and_model"),
        step="040_add_input_and_output_versions", up="ADD COLUMN extra INT NOT NULL"),
    "fractions of a second lost (C30)": Situation(
        ("[statements] column AiAnalysisJob.startedAt", "fractions of a second are lost"), step="010_widen_job_type",
        up="MODIFY startedAt DATETIME NULL"),
    "rows too long (C15)": Situation(
        ("[row-size] table AiAnalysisJob", "1118"), step="010_widen_job_type",
        up=", ".join(f"ADD COLUMN w{n} VARCHAR(700) NULL" for n in range(30))),
    "a foreign key of another collation (C18)": Situation(
        ("[foreign-keys] column AiAnalysisJob.owner", "varchar(191) COLLATE utf8mb4_0900_ai_ci", "varchar(191) COLLATE utf8mb4_unicode_ci"),
        step="010_widen_job_type",
        up="ADD COLUMN owner VARCHAR(191) COLLATE utf8mb4_0900_ai_ci NULL, ADD FOREIGN KEY fko (owner) REFERENCES `User` (id)"),
    "a name that differs by case alone (C80)": Situation(
        ("[statements] column AiAnalysisJob.JOBTYPE", "1060"), step="010_widen_job_type", up="ADD COLUMN JOBTYPE INT NULL"),
}


def refused(here: Call, app: App, plan: str, situation: Situation) -> None:
    before = standing(app)

    answer = here("run", plan, *RUN)

    assert answer.code == 3, answer.text
    assert [part for part in situation.told if part not in answer.text] == [], answer.text
    rehearsed = [part for part in situation.told if part.startswith("[rehearsal]")]
    assert answer.text.count("[rehearsal]") == len(rehearsed), answer.text  # one fault is told once, in plain words
    assert answer.text.count("nothing was touched") == 2, answer.text  # what exit code 3 means, and the end of the message
    assert "(case" not in answer.text
    assert standing(app) == before  # the ledger's tables would show here too


@pytest.mark.parametrize("situation", ON_THE_TABLE.values(), ids=list(ON_THE_TABLE))
def test_what_stands_in_the_way_is_refused_and_nothing_is_touched(here: Call, seeded: App, situation: Situation) -> None:
    for statement in situation.before:
        seeded.run(statement)

    refused(here, seeded, PLAN, situation)


@pytest.mark.parametrize("situation", IN_THE_PLAN.values(), ids=list(IN_THE_PLAN))
def test_what_the_plan_would_break_is_refused_and_nothing_is_touched(here: Call, seeded: App, tmp_path: Path, situation: Situation) -> None:
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "plan"))
    (folder / f"{situation.step}.up.sql").write_text(f"ALTER TABLE `AiAnalysisJob` {situation.up}\n")

    refused(here, seeded, str(folder), situation)


def test_what_only_the_rehearsal_finds_is_told_beside_what_a_check_refuses(here: Call, seeded: App, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "plan"))
    (folder / "010_widen_job_type.up.sql").write_text("ALTER TABLE `AiAnalysisJob` DROP INDEX nowhere\n")
    told = ("[rehearsal] step 010_widen_job_type", "1091")

    assert all(part in here("run", str(folder), *RUN).text for part in told)
    seeded.run("UPDATE AiAnalysisJob SET status = 'Completed '")

    answer = here("run", str(folder), *RUN)

    assert answer.code == 3
    assert all(part in answer.text for part in (*told, "[statuses] column AiAnalysisJob.status"))


def test_an_accept_key_is_told_once_and_after_it_the_rehearsal_speaks(here: Call, seeded: App, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "plan"))
    (folder / "010_widen_job_type.up.sql").write_text("ALTER TABLE `AiAnalysisJob` MODIFY jobType VARCHAR(3) NOT NULL\n")

    answer = here("run", str(folder), *RUN)

    assert answer.code == 3
    assert answer.text.count("--accept narrowing") == 1
    assert "[rehearsal]" not in answer.text
    accepted = here("run", str(folder), *RUN, "--accept", "narrowing")
    assert accepted.code == 3
    assert "[rehearsal] step 010_widen_job_type" in accepted.text
    assert here("check", str(folder)).text.count("--accept narrowing") == 1


def test_a_view_is_told_alone(here: Call, seeded: App, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "plan"))
    seeded.run("RENAME TABLE AiAnalysisJob TO behind")
    seeded.run("CREATE VIEW AiAnalysisJob AS SELECT * FROM behind")

    answer = here("check", str(folder))

    assert answer.code == 3
    assert "refuse [table-shape] table AiAnalysisJob: is a view" in answer.text
    assert "1 refuse, 0 to know" in answer.text


def test_an_unknown_accept_key_is_answered_with_all_that_there_are(here: Call, seeded: App) -> None:
    answer = here("run", PLAN, *RUN, "--accept", "dependents")

    assert answer.code == 2
    assert "cleanup-dependents" in answer.text
    assert "could-not-look:CHECK" in answer.text


def test_all_of_it_comes_at_once(here: Call, seeded: App) -> None:
    """One call tells everything that stands in the way, so that nobody finds the next thing only after mending the last."""
    names = list(ON_THE_TABLE)[1:4] + list(ON_THE_TABLE)[6:8]
    for name in names:
        for statement in ON_THE_TABLE[name].before:
            seeded.run(statement)

    refused(here, seeded, PLAN, Situation(tuple(part for name in names for part in ON_THE_TABLE[name].told)))
