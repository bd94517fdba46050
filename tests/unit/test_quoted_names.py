"""Names inside definitions are found whole, whatever they are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.mysql import quote
from steps.quoted_names import column_of, has_name, lines, parts

NAME = st.text("ab`',() \n\"\\", min_size=1, max_size=8).filter(lambda name: not name.endswith(" "))


@given(st.lists(NAME, min_size=1, max_size=5))
def test_the_parts_of_an_index_are_its_columns_whatever_they_are_called(names: list[str]) -> None:
    definition = f"UNIQUE INDEX ({', '.join(quote(name) + ('(10) DESC' if len(name) > 3 else '') for name in names)}) INVISIBLE"

    assert [column_of(part) for part in parts(definition)] == names


@given(NAME, NAME)
def test_a_name_is_found_where_it_stands_whole_and_nowhere_else(name: str, other: str) -> None:
    assert has_name(f"FOREIGN KEY ({quote(name)})", name)
    assert has_name(f"INDEX ({quote(other)})", name) is (name.lower() == other.lower())


def test_an_expression_is_a_part_and_no_column() -> None:
    found = parts("INDEX ((concat(`a`,_utf8mb4'x, (y')), `b``, c`(3))")

    assert found == ["(concat(`a`,_utf8mb4'x, (y'))", "`b``, c`(3)"]
    assert [column_of(part) for part in found] == [None, "b`, c"]


@pytest.mark.parametrize("name", ["a\nb", "a\n) ENGINE=x", "a`\n`b", "'\n'"])
def test_a_line_break_in_a_name_ends_no_clause(name: str) -> None:
    sql = f"CREATE TABLE `t` (\n  {quote(name)} int DEFAULT NULL COMMENT 'it`s',\n  KEY `k` ({quote(name)})\n) ENGINE=InnoDB"

    assert lines(sql) == ["CREATE TABLE `t` (", f"  {quote(name)} int DEFAULT NULL COMMENT 'it`s',", f"  KEY `k` ({quote(name)})",
                          ") ENGINE=InnoDB"]
