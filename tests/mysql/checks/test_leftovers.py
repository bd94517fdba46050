"""What other schema-change tools left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, leftovers
from steps.mysql import Session, quote

Run = Callable[..., list[Finding]]


def test_a_table_alone_is_clean(found: Run) -> None:
    assert found(leftovers) == []


def test_triggers_of_pt_online_schema_change_refuse(found: Run, session: Session) -> None:
    session.run("CREATE TRIGGER pt_osc_db_AiAnalysisJob_upd AFTER UPDATE ON AiAnalysisJob FOR EACH ROW SET @x = 1")

    [finding] = found(leftovers)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "trigger pt_osc_db_AiAnalysisJob_upd", None)
    assert "pt-online-schema-change" in finding.what


@pytest.mark.parametrize(("name", "tool"), [("_AiAnalysisJob_new", "pt-online-schema-change"), ("_AiAnalysisJob_gho", "gh-ost"),
                                            ("_AiAnalysisJob_ghc", "gh-ost"), ("_AiAnalysisJob_del", "gh-ost"),
                                            ("_AiAnalysisJob_chkpnt", "spirit"), ("lhmn_AiAnalysisJob", "Large Hadron Migrator")])
def test_their_tables_are_told(found: Run, session: Session, name: str, tool: str) -> None:
    session.run(f"CREATE TABLE {quote(name)} (id INT PRIMARY KEY)")

    [finding] = found(leftovers)

    assert (finding.severity, finding.subject, finding.accept) == ("warn", f"table {name}", None)
    assert tool in finding.what
