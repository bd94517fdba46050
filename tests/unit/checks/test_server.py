"""Servers that cannot be started here, judged by what they say of themselves."""

from __future__ import annotations

import pytest

from steps.checks.known_bad import KNOWN_BAD
from steps.checks.server import OLDEST, Facts, judge, unsupported

GOOD = "9.7.4"


@pytest.mark.parametrize("version", ["8.0.32", "8.4.5", GOOD, "8.0.36-28", "8.0.44-cloud"])
def test_supported_versions_are_clean(version: str) -> None:
    assert judge(Facts(version)) == []


@pytest.mark.parametrize(("version", "comment", "flavour"), [
    ("10.11.19-MariaDB-log", "", "MariaDB"), ("5.5.5-10.6.1", "mariadb.org binary distribution", "MariaDB"),
    ("8.0.11-TiDB-v8.5.0", "TiDB Server", "TiDB"), ("8.0.30-Vitess", "", "Vitess"),
    ("8.0.34", "PlanetScale Managed", "PlanetScale"),
])
def test_other_flavours_are_refused_by_name_and_alone(version: str, comment: str, flavour: str) -> None:
    [finding] = judge(Facts(version, comment, {"read_only": "ON"}, sees_locks=False))

    assert finding == unsupported(Facts(version, comment))
    assert (finding.severity, finding.accept, finding.subject) == ("refuse", None, f"server {flavour} {version}")
    assert "nothing was done" in finding.what
    assert "MySQL 8.0.32" in finding.remedy


@pytest.mark.parametrize("version", ["5.7.44", "8.0.28", "8.0.11", "unknown"])
def test_old_versions_are_refused(version: str) -> None:
    [finding] = judge(Facts(version))

    assert (finding.severity, finding.accept, finding.subject) == ("refuse", None, f"server {version}")
    assert "from 8.0.29 on" in finding.what


@pytest.mark.parametrize("version", ["8.0.29", "8.0.30", "8.0.31-debug"])
def test_known_bad_versions_are_refused_unless_accepted(version: str) -> None:
    [finding] = judge(Facts(version))

    assert (finding.severity, finding.accept) == ("refuse", "known-bad-version")
    assert "--accept known-bad-version" in finding.remedy


def test_versions_that_lose_moved_columns_matter_only_to_plans_that_move_some() -> None:
    assert judge(Facts("8.0.36"), moves=False) == []
    assert judge(Facts("8.0.37"), moves=True) == []
    [finding] = judge(Facts("8.0.36"), moves=True)

    assert (finding.severity, finding.accept) == ("refuse", "known-bad-version")
    assert "a crash soon after it can corrupt the table" in finding.what


def test_the_table_of_bad_versions_lists_none_that_is_refused_as_too_old() -> None:
    assert all(OLDEST <= bad.first <= bad.last for bad in KNOWN_BAD)


@pytest.mark.parametrize("variables", [{"wsrep_on": "ON"}, {"pxc_strict_mode": "ENFORCING", "wsrep_on": "OFF"}])
def test_clusters_are_refused(variables: dict[str, str]) -> None:
    [finding] = judge(Facts(GOOD, "", variables))

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert "Galera or Percona XtraDB cluster" in finding.what


def test_a_server_built_for_clusters_that_is_none_is_clean() -> None:
    assert judge(Facts(GOOD, "", {"wsrep_on": "OFF"})) == []


@pytest.mark.parametrize("switch", ["read_only", "super_read_only", "innodb_read_only", "transaction_read_only"])
def test_a_read_only_server_is_refused(switch: str) -> None:
    [finding] = judge(Facts(GOOD, "", {switch: "ON", "wsrep_on": "OFF"}))

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert f"({switch} ON)" in finding.what
    assert finding.remedy == "name the primary in the database URL"


def test_unrecorded_metadata_locks_are_could_not_look_with_no_gap() -> None:
    [finding] = judge(Facts(GOOD, sees_locks=False))

    assert (finding.severity, finding.accept, finding.could_not_look) == ("refuse", "no-gap", True)
    assert "wait/lock/metadata/sql/mdl" in finding.what
    assert "--accept no-gap" in finding.remedy


def test_findings_of_several_kinds_come_together() -> None:
    found = judge(Facts("8.0.30", "", {"wsrep_on": "1", "read_only": "1"}, sees_locks=False))

    assert [f.accept for f in found] == [None, "known-bad-version", None, "no-gap"]
