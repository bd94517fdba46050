"""Parents of foreign keys are found by tokens and replaced by position; the rest of the text stays as it is."""

from __future__ import annotations

import pytest

from steps.references import references, renamed


@pytest.mark.parametrize(("sql", "found"), [
    ("ADD FOREIGN KEY (a) REFERENCES user(id)", [(None, "user", ("id",))]),
    ("ADD CONSTRAINT `c` FOREIGN KEY (`a`, `b`) references `my``user` (`i``d`, b) ON DELETE CASCADE", [(None, "my`user", ("i`d", "b"))]),
    ("ADD FOREIGN KEY (a) REFERENCES away . `user` (id), ADD FOREIGN KEY (b) REFERENCES `t` (`x`)",
     [("away", "user", ("id",)), (None, "t", ("x",))]),
    ("ADD COLUMN `references` INT COMMENT 'REFERENCES away.user (id)' -- REFERENCES nobody (id)", []),
    ("ADD COLUMN broken 'REFERENCES user (id)", []),
])
def test_every_parent_is_found_and_words_in_quotes_and_comments_are_none(sql: str, found: list[object]) -> None:
    assert [(r.schema, r.table, r.columns) for r in references(sql)] == found


def test_only_qualified_parents_are_renamed_and_nothing_else_moves() -> None:
    sql = "ADD COLUMN é INT COMMENT 'REFERENCES `a`.`b` (c)', /* 😀 */ ADD FOREIGN KEY (x)  REFERENCES a.`b`(c), "
    sql += "ADD FOREIGN KEY (y) REFERENCES b (c)"

    assert renamed(sql, {("a", "b"): "other`one"}) == sql.replace("a.`b`(c)", "`other``one`(c)")
    assert renamed(sql, {("a", "c"): "other"}) == sql
