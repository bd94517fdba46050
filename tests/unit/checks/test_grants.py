"""Reading SHOW GRANTS."""

from __future__ import annotations

import pytest

from steps.checks.grants import parsed


@pytest.mark.parametrize("line", [
    "GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION",
    "GRANT SELECT, LOCK TABLES ON *.* TO `a`@`%`",
    "GRANT LOCK TABLES, SELECT ON `shop`.* TO `a`@`%`",
    "GRANT SELECT, LOCK TABLES ON `sh%`.* TO `a`@`%`",
    "GRANT SELECT, LOCK TABLES ON `sho_`.* TO `a`@`%`",
])
def test_a_right_counts_at_every_level(line: str) -> None:
    assert parsed([line]).lacks(("SELECT", "LOCK TABLES"), "shop", "job") == []


@pytest.mark.parametrize("line", [
    "GRANT USAGE ON *.* TO `a`@`%`",
    "GRANT SELECT ON `shop2`.* TO `a`@`%`",
    r"GRANT SELECT ON `sho\_`.* TO `a`@`%`",
    "GRANT SELECT ON `shop`.`other` TO `a`@`%`",
    "GRANT SELECT (`id`, `a ON b`) ON `shop`.`job` TO `a`@`%`",
    "GRANT EXECUTE ON PROCEDURE `shop`.`job` TO `a`@`%`",
    "GRANT `role`@`%` TO `a`@`%`",
])
def test_a_right_elsewhere_or_on_a_column_does_not_count(line: str) -> None:
    assert parsed([line]).lacks(("SELECT",), "shop", "job") == ["SELECT"]


def test_a_right_on_one_table_counts_for_it_and_not_for_the_schema() -> None:
    grants = parsed(["GRANT SELECT, UPDATE (`x`) ON `sh``op`.`jo.b` TO `a`@`%`"])

    assert grants.lacks(("SELECT", "UPDATE"), "sh`op", "jo.b") == ["UPDATE"]
    assert grants.lacks(("SELECT",), "sh`op") == ["SELECT"]


def test_an_exact_name_hides_patterns_as_the_server_has_it() -> None:
    grants = parsed([r"GRANT SELECT ON `my\_shop`.* TO `a`@`%`", "GRANT SELECT, ALTER ON `my%`.* TO `a`@`%`"])

    assert grants.lacks(("SELECT", "ALTER"), "my_shop") == ["ALTER"]
    assert grants.lacks(("SELECT", "ALTER"), "my_other") == []


def test_partial_revokes_take_away_and_make_patterns_plain() -> None:
    lines = [
        "GRANT SELECT, ALTER ON *.* TO `a`@`%`", "REVOKE ALTER ON `shop`.* FROM `a`@`%`", "GRANT DROP ON `sh%`.* TO `a`@`%`",
    ]

    assert parsed(lines, literal=True).lacks(("SELECT", "ALTER", "DROP"), "shop") == ["ALTER", "DROP"]
    assert parsed(lines, literal=True).lacks(("ALTER",), "other") == []


def test_names_fold_where_the_server_folds_them() -> None:
    line = "GRANT SELECT ON `shop`.`job` TO `a`@`%`"

    assert parsed([line], fold=True).lacks(("SELECT",), "Shop", "Job") == []
    assert parsed([line]).lacks(("SELECT",), "Shop", "Job") == ["SELECT"]
