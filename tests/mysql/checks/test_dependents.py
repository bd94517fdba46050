"""What names a column that the plan removes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from steps.checks import Finding, dependents
from steps.mysql import Session, quote
from steps.plan import Plan
from steps.target import Target

Run = Callable[..., list[Finding]]
MAKE = {
    "generated column dur": "ALTER TABLE AiAnalysisJob ADD COLUMN dur INT AS (TIMESTAMPDIFF(SECOND, createdAt, completedAt)) VIRTUAL",
    "index fi": "ALTER TABLE AiAnalysisJob ADD INDEX fi ((DATE_FORMAT(completedAt, 'it\\'s %Y')))",
    "check ck": "ALTER TABLE AiAnalysisJob ADD CONSTRAINT ck CHECK (completedAt IS NULL OR completedAt >= createdAt)",
    "view {schema}.v1": "CREATE VIEW v1 AS SELECT id, completedAt FROM AiAnalysisJob",
    "trigger au": "CREATE TRIGGER au AFTER UPDATE ON AiAnalysisJob FOR EACH ROW SET @x = NEW.completedAt",
    "trigger {schema}.tu": "CREATE TRIGGER tu AFTER UPDATE ON `User` FOR EACH ROW "
                           "UPDATE AiAnalysisJob SET completedAt = NULL WHERE userId = NEW.id",
    "event {schema}.ev": "CREATE EVENT ev ON SCHEDULE EVERY 1 YEAR DO DELETE FROM AiAnalysisJob WHERE completedAt IS NULL",
    "procedure {schema}.p": "CREATE PROCEDURE p() SELECT completedAt FROM AiAnalysisJob",
    "function {schema}.f": "CREATE FUNCTION f() RETURNS DATETIME READS SQL DATA RETURN (SELECT MAX(completedAt) FROM AiAnalysisJob)",
}


STOPS = {"generated column dur": "3108", "index fi": "3837", "check ck": "3959"}


def test_a_table_alone_is_clean(found: Run) -> None:
    assert found(dependents) == []


@pytest.mark.parametrize("subject", STOPS)
def test_what_mysql_itself_would_refuse_is_refused_at_once(found: Run, session: Session, subject: str) -> None:
    session.run(MAKE[subject])

    [finding] = found(dependents)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", subject, None)
    assert finding.what.startswith("names completedAt, which cleanup removes; ")
    assert STOPS[subject] in finding.what


@pytest.mark.parametrize("subject", [s for s in MAKE if s not in STOPS])
def test_a_dependent_of_a_column_that_cleanup_removes_is_a_warning(found: Run, session: Session, database: Target,
                                                                   subject: str) -> None:
    session.run(MAKE[subject])

    [finding] = found(dependents)

    assert (finding.severity, finding.accept) == ("warn", None)
    assert finding.subject == subject.replace("{schema}", database.schema)
    assert finding.what == "names completedAt, which cleanup removes"
    assert finding.remedy.endswith("before that; no earlier phase touches it")


def test_a_star_view_is_found_by_its_stored_columns(found: Run, session: Session, database: Target) -> None:
    session.run("CREATE VIEW v2 AS SELECT * FROM AiAnalysisJob")

    [finding] = found(dependents)

    assert finding.subject == f"view {database.schema}.v2"
    assert finding.what == "names status, sessionId, answerId, completedAt, errorMessage, which cleanup removes"


@pytest.mark.parametrize("sql", [
    "CREATE VIEW v AS SELECT id, 'completedAt' AS word FROM AiAnalysisJob",
    "CREATE PROCEDURE p() SELECT id /* completedAt */ FROM AiAnalysisJob",
    "CREATE PROCEDURE p() SELECT status FROM AiRuntimeJob",
    "CREATE TRIGGER au AFTER UPDATE ON AiAnalysisJob FOR EACH ROW SET @x = NEW.startedAt",
    "ALTER TABLE AiAnalysisJob ADD CONSTRAINT ck CHECK (progress >= 0)",
])
def test_what_names_no_such_column_is_no_finding(found: Run, session: Session, sql: str) -> None:
    session.run(sql)

    assert found(dependents) == []


@pytest.fixture
def abroad(session: Session, database: Target) -> Iterator[str]:
    """Another schema beside the table's."""
    other = f"{database.schema}_other"
    session.run(f"CREATE DATABASE {quote(other)}")
    yield other
    session.run(f"DROP DATABASE {quote(other)}")


@pytest.mark.parametrize("qualified", [True, False])
def test_a_routine_of_another_schema_counts_where_it_names_ours(
        found: Run, session: Session, database: Target, abroad: str, qualified: bool) -> None:
    table = f"{quote(database.schema)}.AiAnalysisJob" if qualified else "AiAnalysisJob"
    session.run(f"CREATE PROCEDURE {quote(abroad)}.p() SELECT completedAt FROM {table}")

    assert [f.subject for f in found(dependents)] == ([f"procedure {abroad}.p"] if qualified else [])


def test_a_column_that_a_step_itself_removes_refuses(found: Run, session: Session, plan: Plan) -> None:
    session.run(MAKE["trigger au"])
    text = {**plan.sql_text, "010_widen_job_type.up.sql": "ALTER TABLE AiAnalysisJob DROP COLUMN completedAt"}

    [finding] = found(dependents, plan.model_copy(update={"sql_text": text}))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "trigger au", None)
    assert finding.what == "names completedAt, which a step of pre_deploy removes"
    assert finding.remedy == "rewrite it without them"


def test_a_before_trigger_is_told_that_ours_comes_after(found: Run, session: Session) -> None:
    session.run("CREATE TRIGGER bu BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW SET NEW.progress = 1")

    [finding] = found(dependents)

    assert (finding.severity, finding.subject, finding.accept) == ("warn", "trigger bu", None)
    assert "is placed after the last such trigger" in finding.what


def test_our_own_triggers_are_no_dependents(found: Run, session: Session) -> None:
    session.run("CREATE TRIGGER rollout_ai_analysis_job_bu BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW SET @x = NEW.status")

    assert found(dependents) == []


def test_definitions_that_are_not_shown_are_could_not_look(found: Run, session: Session, database: Target,
                                                           account: Callable[..., Session]) -> None:
    session.run(MAKE["procedure {schema}.p"])

    [finding] = found(dependents, by=account("SELECT, EXECUTE ON {schema}.*"))

    assert (finding.severity, finding.subject, finding.could_not_look) == ("warn", f"procedure {database.schema}.p", True)
    assert "SHOW_ROUTINE" in finding.remedy


def test_every_shared_index_of_a_column_that_goes_is_told(found: Run, session: Session, plan: Plan) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD INDEX alone (sessionId), ADD INDEX shared (sessionId, createdAt), "
                "ADD UNIQUE INDEX `both` (answerId, id)")

    findings = found(dependents)

    assert [(f.severity, f.subject) for f in findings] == [("refuse", "index both"), ("refuse", "index shared")]
    assert "rows may then collide in it (1062)" in findings[0].what
    assert findings[1].what == "stands on sessionId, which cleanup removes, and on other columns: MySQL would narrow it silently"
    named = plan.cleanup.model_copy(update={"drop_indexes": ("both", "shared")})
    assert found(dependents, plan.model_copy(update={"cleanup": named})) == []


def test_foreign_keys_of_a_column_that_goes_are_told_on_both_sides(found: Run, session: Session, database: Target) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD UNIQUE INDEX answer (answerId), "
                "ADD CONSTRAINT mine FOREIGN KEY (sessionId) REFERENCES `User` (id)")
    session.run("CREATE TABLE child (id INT PRIMARY KEY, a VARCHAR(191), "
                "CONSTRAINT theirs FOREIGN KEY (a) REFERENCES AiAnalysisJob (answerId)) COLLATE utf8mb4_unicode_ci")

    findings = found(dependents)

    assert [(f.severity, f.subject) for f in findings] == [
        ("refuse", f"foreign key mine of {database.schema}.AiAnalysisJob"), ("refuse", f"foreign key theirs of {database.schema}.child")]
    assert "1828" in findings[0].what
    assert "1829" in findings[1].what


@pytest.mark.parametrize("body", ["REPLACE INTO AiAnalysisJob (id, completedAt) SELECT id, NOW() FROM `User`",
                                  "BEGIN CALL q(); REPLACE AiAnalysisJob SET id = 'a', completedAt = NULL; END"])
def test_names_behind_words_that_are_commands_elsewhere_are_seen(found: Run, session: Session, database: Target, body: str) -> None:
    session.run(f"CREATE PROCEDURE p() {body}")

    assert [f.subject for f in found(dependents)] == [f"procedure {database.schema}.p"]


def test_a_check_over_one_column_would_vanish_silently(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD CONSTRAINT ck2 CHECK (status <> '')")

    [finding] = found(dependents)

    assert (finding.severity, finding.subject) == ("refuse", "check ck2")
    assert "would vanish without a word" in finding.what


def test_a_rename_in_place_counts_as_removal(found: Run, session: Session, plan: Plan) -> None:
    session.run(MAKE["trigger au"])
    in_place = plan.model_copy(update={"plan": plan.plan.model_copy(update={"path": "adr"})})

    [finding] = found(dependents, in_place)

    assert (finding.severity, finding.subject) == ("refuse", "trigger au")
    assert finding.what == "names completedAt, which a step of pre_deploy removes"


def test_views_of_another_schema_and_views_that_no_longer_work_are_found(
        found: Run, session: Session, database: Target, abroad: str) -> None:
    session.run(f"CREATE VIEW {quote(abroad)}.v AS SELECT completedAt FROM {quote(database.schema)}.AiAnalysisJob")
    session.run("CREATE TABLE aside (x INT)")
    session.run("CREATE VIEW broken AS SELECT x, (SELECT MAX(completedAt) FROM AiAnalysisJob) AS m FROM aside")
    session.run("ALTER TABLE aside RENAME COLUMN x TO y")

    assert [(f.severity, f.subject) for f in found(dependents)] == [
        ("warn", f"view {database.schema}.broken"), ("warn", f"view {abroad}.v")]


@pytest.mark.parametrize("body", [
    "SET @s = 'select sessionId from AiAnalysisJob'; PREPARE x FROM @s; EXECUTE x; DEALLOCATE PREPARE x;",
    "PREPARE x FROM 'select `sessionId` from `AiAnalysisJob`'; EXECUTE x;",
    "SET @s = CONCAT('select a from ', DATABASE()); PREPARE x FROM @s; EXECUTE x;",
    "SET @s := 'select 1'; SET @s = CONCAT(@s, @t); PREPARE x FROM @s; EXECUTE x;",
    "PREPARE x FROM @given; EXECUTE x;",
])
def test_statements_that_a_routine_prepares_could_not_be_looked_at(found: Run, session: Session, body: str) -> None:
    session.verbatim(f"CREATE PROCEDURE dyn () BEGIN {body} END")

    [finding] = found(dependents)

    assert (finding.severity, finding.could_not_look) == ("warn", True)
    assert finding.subject.startswith("procedure ")
    assert finding.subject.endswith(".dyn")
    assert "could not look: it prepares statements of its own (PREPARE)" in finding.what


@pytest.mark.parametrize("body", [
    "SET @s = 'select 1'; PREPARE x FROM @s; EXECUTE x; DEALLOCATE PREPARE x;",
    "PREPARE x FROM 'select 1'; EXECUTE x;",
    "SELECT 'PREPARE AiAnalysisJob for the night';",
    "SET @prepared = CONCAT('AiAnalysisJob', 1);",
])
def test_routines_that_prepare_nothing_about_the_table_are_quiet(found: Run, session: Session, body: str) -> None:
    session.verbatim(f"CREATE PROCEDURE dyn () BEGIN {body} END")

    assert found(dependents) == []


def test_an_event_that_prepares_is_told_too_and_another_schemas_is_not(
        found: Run, session: Session, abroad: str) -> None:
    prepares = "ON SCHEDULE EVERY 1 YEAR STARTS '2090-01-01' DO BEGIN PREPARE x FROM @s; EXECUTE x; END"
    session.verbatim(f"CREATE EVENT {quote(abroad)}.ev {prepares}")
    session.verbatim(f"CREATE EVENT ev {prepares}")

    [finding] = found(dependents)

    assert finding.subject.startswith("event ")
