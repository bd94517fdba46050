"""What SQL text names."""

from __future__ import annotations

import pytest

from steps import plan_loader
from steps.checks.words import Key, added_columns, keys, names, removed_columns, steps_sql


def test_strings_and_comments_name_nothing() -> None:
    assert names("SET NEW.a = 'b' /* c */, `D e` = 1 -- f") == {"set", "new", ".", "a", "=", ",", "d e"}


def test_the_catalogues_escaped_quotes_are_undone() -> None:
    assert {"json_extract", "j"} <= names(r"json_extract(`j`,_utf8mb4\'$.x\')")
    assert "x" not in names(r"json_extract(`j`,_utf8mb4\'$.x\')")


def test_where_quotes_cannot_be_undone_every_word_counts() -> None:
    assert {"status", "it"} <= names(r"concat(`status`, 'it")


@pytest.mark.parametrize(("clause", "key"), [
    ("ADD UNIQUE INDEX `u` (`a`, b(10) DESC)", Key("u", (("a", None), ("b", 10)))),
    ("ADD UNIQUE (a)", Key("", (("a", None),))),
    ("ADD CONSTRAINT c UNIQUE KEY k USING BTREE (a)", Key("k", (("a", None),))),
    ("ADD CONSTRAINT `UNIQUE` UNIQUE (a)", Key("UNIQUE", (("a", None),))),
    ("ADD CONSTRAINT `f` FOREIGN KEY (`a`, b) REFERENCES `P` (`x`, y) ON DELETE CASCADE",
     Key("f", (("a", None), ("b", None)), "P", ("x", "y"))),
    ("add foreign key (a) references p(x)", Key("", (("a", None),), "p", ("x",))),
])
def test_keys_are_found_among_other_clauses(clause: str, key: Key) -> None:
    assert keys(f"ALTER TABLE `t` ADD COLUMN z VARCHAR(9) DEFAULT '(,' AFTER y, {clause}, ADD INDEX (q)") == [key]


def test_unique_indexes_over_expressions_are_left_out() -> None:
    assert keys("ALTER TABLE t ADD UNIQUE INDEX u ((LOWER(a)))") == []


def test_columns_added_and_removed_are_told_apart_from_keys() -> None:
    alter = ("ALTER TABLE t ADD a INT, ADD COLUMN `b` DECIMAL(3, 1) AFTER a, ADD COLUMN (c INT, d INT), ADD INDEX e "
             "(f), "
             "DROP g, DROP COLUMN h, DROP INDEX i, DROP PRIMARY KEY, DROP FOREIGN KEY j, CHANGE k l INT, CHANGE "
             "COLUMN M m INT, "
             "RENAME COLUMN n TO o, RENAME INDEX p TO q, MODIFY r INT, ALTER COLUMN s SET DEFAULT 1")

    assert added_columns(alter) == ["a", "b", "c", "d"]
    assert removed_columns(alter) == ["g", "h", "k", "n"]


def test_the_shipped_plan_is_read_completely() -> None:
    sql = steps_sql(plan_loader.load("ai_analysis_job"))

    assert sum(len(added_columns(text)) for text in sql.values()) == 31
    assert [removed_columns(text) for text in sql.values()] == [[]] * len(sql)
    assert [key.name for text in sql.values() for key in keys(text)] == [
        "AiAnalysisJob_idempotencyKey_key", "idx_userId_jobType_idempotencyKey", "AiAnalysisJob_parentJobId_fkey"]
