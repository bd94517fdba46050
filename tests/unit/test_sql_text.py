"""A plan's SQL files are read with a tokenizer (case C75) and are otherwise sent verbatim."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.errors import PlanInvalid
from steps.sql_text import alter_statement, query_statement

FILE = Path("/plan/x.sql")


@pytest.mark.parametrize("text", [
    "ALTER TABLE `t` ADD COLUMN `a` INT",
    "alter table t add column a int",
    "ALTER TABLE t ADD COLUMN `a;b` INT DEFAULT 'a;b' COMMENT \"a;b\"",
    "ALTER TABLE t ADD COLUMN `algorithm` INT, ADD COLUMN `lock` INT, ADD COLUMN `rename` INT",
    "ALTER TABLE t ADD COLUMN a VARCHAR(32) DEFAULT 'LOCK' COMMENT 'ALGORITHM=COPY'",
    "ALTER TABLE t ADD COLUMN `100%` INT COMMENT ':x 12:30:00 @a:=1 ? %s %(x)s'",
    "ALTER TABLE t ADD COLUMN /* it's; x */ a INT -- it's; y\n, ADD COLUMN b INT # c;\n, ADD COLUMN c INT",
    "ALTER TABLE t RENAME COLUMN a TO b",
    "ALTER TABLE t RENAME INDEX a TO b",
    "ALTER TABLE t ADD COLUMN a VARCHAR(9) DEFAULT 'it''s'",
])
@pytest.mark.parametrize(("before", "after"), [
    ("", ""), ("-- it's; x\n", ";"), ("# c;\r\n/* ; */\r\n", " ;\r\n;  \r\n"), ("\n\n", "\n-- the end; really\n"), (" ", "; -- done;")])
def test_one_statement_is_taken_verbatim_whatever_stands_around_it(text: str, before: str, after: str) -> None:
    assert alter_statement(FILE, before + text + after, "t") == text


@pytest.mark.parametrize(("text", "line", "reason"), [
    ("", 1, "holds no statement"),
    ("-- nothing\n;\n;", 1, "holds no statement"),
    ("ALTER TABLE t ADD a INT;\nALTER TABLE t ADD b INT", 1, "holds a second statement"),
    ("ALTER TABLE t\nADD a INT DEFAULT 'x", 2, "ends inside a quote or comment"),
    ("ALTER TABLE t ADD `a INT", 1, "ends inside a quote or comment"),
    ("ALTER TABLE t ADD a INT /* never closed", 1, "ends inside a quote or comment"),
    ("DELIMITER $$\nALTER TABLE t ADD a INT$$\nDELIMITER ;", 1, "DELIMITER is a word of the mysql client"),
    ("DELIMITER ;;\nDELIMITER ;", 1, "DELIMITER is a word of the mysql client"),
    ("/*!50003 CREATE TRIGGER x */", 1, "has a version comment"),
    ("ALTER TABLE t ADD a INT /*!80000 , ADD b INT */", 1, "has a version comment"),
    ("\nDROP TABLE t", 2, "is not an ALTER TABLE"),
    ("CREATE INDEX i ON t (a)", 1, "is not an ALTER TABLE"),
    ("ALTER TABLE\nother ADD a INT", 2, "alters other, not t"),
    ("ALTER TABLE T ADD a INT", 1, "alters T, not t"),
    ("ALTER TABLE t.other ADD a INT", 1, "alters t, not t"),
    ("ALTER TABLE t ADD a INT,\nALGORITHM=INSTANT", 2, "names ALGORITHM"),
    ("ALTER TABLE t ADD a INT, algorithm = copy", 1, "names ALGORITHM"),
    ("ALTER TABLE t ADD a INT, LOCK=NONE", 1, "names LOCK"),
    ("ALTER TABLE t ADD a INT, lock none", 1, "names LOCK"),
    ("ALTER TABLE t RENAME TO u", 1, "renames the table"),
    ("ALTER TABLE t RENAME AS u", 1, "renames the table"),
    ("ALTER TABLE t RENAME u", 1, "renames the table"),
    ("ALTER TABLE t RENAME COLUMN a TO b, RENAME TO u", 1, "renames the table"),
    ("ALTER TABLE t RENAME", 1, "renames the table"),
])
def test_another_text_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(PlanInvalid, match=reason) as raised:
        alter_statement(FILE, text, "t")

    assert raised.value.subject == f"{FILE}:{line}"


def test_a_query_keeps_its_comments_inside_and_its_expectation() -> None:
    query = query_statement(FILE, "-- expect: value 3 \n-- why: ; it's\nSELECT COUNT(*) /* all; */ FROM t WHERE a = 'x;%s:y';\n")

    assert (query.name, query.sql, query.expect) == ("x.sql", "SELECT COUNT(*) /* all; */ FROM t WHERE a = 'x;%s:y'", "value 3")


@pytest.mark.parametrize("select", [
    "SELECT `update`, `into`, share FROM t", "SELECT 'FOR UPDATE', \"DELETE\" FROM t",
    "SELECT INSERT('a', 1, 1, 'b'), REPLACE('a', 'b', 'c')",
    "WITH x AS (SELECT 1 AS a) SELECT a FROM x", "SELECT id FROM t FORCE INDEX (i) WHERE updated_at > 1"])
def test_a_query_may_name_such_words_in_quotes(select: str) -> None:
    assert query_statement(FILE, f"-- expect: some rows\n{select}").sql == select


@pytest.mark.parametrize(("text", "reason"), [
    ("SELECT 1", "has no known expectation"),
    ("-- expect: something\nSELECT 1", "has no known expectation"),
    ("-- expect: no rows\nDELETE FROM t", "is not a SELECT"),
    ("-- expect: no rows\nSELECT 1; SELECT 2", "holds a second statement"),
    ("-- expect: no rows\nSELECT '", "ends inside a quote"),
    ("-- expect: no rows\nWITH x AS (SELECT 1) DELETE FROM t", "names DELETE"),
    ("-- expect: no rows\nWITH x AS (SELECT 1) UPDATE t SET a = 1", "names UPDATE"),
    ("-- expect: no rows\nSELECT 1 INTO OUTFILE '/tmp/x'", "names INTO"),
    ("-- expect: no rows\nSELECT id FROM t for update", "names UPDATE"),
    ("-- expect: no rows\nSELECT id FROM t FOR SHARE", "names FOR"),
    ("-- expect: no rows\nSELECT id FROM t LOCK IN SHARE MODE", "names LOCK"),
])
def test_a_query_that_does_not_only_read_or_expects_nothing_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PlanInvalid, match=reason):
        query_statement(FILE, text)
