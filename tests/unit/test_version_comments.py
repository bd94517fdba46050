"""A version comment is found wherever the server would execute it, and nowhere else (case C75)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import sql_text
from steps.errors import PlanInvalid

FILE = Path("010.up.sql")
ADD = "ALTER TABLE `t` ADD COLUMN `c` INT"


@pytest.mark.parametrize("text", [
    f"{ADD} /*! , DROP COLUMN `d` */",
    f"{ADD} /*!80000 , DROP COLUMN `d` */",
    f"-- it's a quote that opens nothing\n{ADD} /*! , DROP COLUMN `d` */ -- it's",
    f"--\x01'\n{ADD} /*! , DROP COLUMN `d` */ -- '",
    f"# it's\n{ADD} /*! , DROP COLUMN `d` */ # it's",
    f"/* it's */ {ADD} /*! , DROP COLUMN `d` */ /* it's */",
    f"{ADD} COMMENT 'a\\'' /*! , DROP COLUMN `d` */ -- '",
    f"{ADD} COMMENT 'a''' /*! , DROP COLUMN `d` */ -- '",
    f'{ADD} COMMENT "it\'s" /*! , DROP COLUMN `d` */ -- \'',
])
def test_one_that_would_be_executed_is_refused_however_it_is_hidden(text: str) -> None:
    with pytest.raises(PlanInvalid, match="version comment"):
        sql_text.alter_statement(FILE, text, "t")


@pytest.mark.parametrize("text", [f"{ADD} COMMENT 'what /*! is'", f"-- /*! in a comment\n{ADD}",
                                  "ALTER TABLE `t` ADD COLUMN `c /*! d` INT"])
def test_one_inside_a_text_a_name_or_a_comment_is_none(text: str) -> None:
    assert sql_text.alter_statement(FILE, text, "t") in text
