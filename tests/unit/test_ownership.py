"""The name of a table's lock."""

from __future__ import annotations

from itertools import combinations

from steps.ownership import lock_name

TABLES = [("s", "t"), ("s", "T"), ("s2", "t"), ("s" * 64, "t" * 64), ("s" * 64, "t" * 63), ("ß", "é`'")]


def test_every_table_has_a_lock_name_of_its_own_that_mysql_takes() -> None:
    names = [lock_name(*table) for table in TABLES]

    assert all(len(name) <= 64 and name.isascii() for name in names)
    assert all(one != other for one, other in combinations(names, 2))
    assert names == [lock_name(*table) for table in TABLES]
