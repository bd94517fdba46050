"""Accounts of the table's triggers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, definers
from steps.errors import StatementFailed
from steps.mysql import Session, quote

Run = Callable[..., list[Finding]]


@pytest.fixture
def orphaned(session: Session) -> str:
    """A trigger whose account is gone; answers the account's name."""
    name = f"gone{session.connection_id}"
    session.run(f"CREATE USER {quote(name)}@'%'")
    session.run(f"CREATE DEFINER = {quote(name)}@'%' TRIGGER bu BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW SET NEW.progress = 1")
    session.run(f"DROP USER {quote(name)}@'%'")
    return name


def test_an_account_that_exists_is_clean(found: Run, session: Session) -> None:
    session.run("CREATE TRIGGER bu BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW SET NEW.progress = 1")
    session.run("CREATE DEFINER = 'mysql.sys'@'localhost' TRIGGER bi BEFORE INSERT ON AiAnalysisJob FOR EACH ROW SET NEW.progress = 1")

    assert found(definers) == []


def test_an_account_that_is_gone_is_refused_as_the_server_would(found: Run, session: Session, orphaned: str) -> None:
    [finding] = found(definers)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "trigger bu", None)
    assert f"belongs to {orphaned}@%, an account that does not exist" in finding.what
    with pytest.raises(StatementFailed, match="1449"):
        session.run("UPDATE AiAnalysisJob SET progress = 2 WHERE id = 'j0'")


def test_accounts_that_may_not_be_seen_are_could_not_look(found: Run, orphaned: str, account: Callable[..., Session]) -> None:
    [finding] = found(definers, by=account("ALL ON {schema}.*"))

    assert (finding.severity, finding.could_not_look, finding.accept) == ("warn", True, None)
    assert orphaned in finding.subject
