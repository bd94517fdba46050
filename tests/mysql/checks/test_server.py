"""The server check against the real server; other flavours and switches are in tests/unit/checks/test_server.py."""

from __future__ import annotations

from collections.abc import Callable

from steps.checks import Finding, server
from steps.mysql import Session


def test_a_supported_primary_is_clean(found: Callable[..., list[Finding]]) -> None:
    assert found(server) == []


def test_a_look_at_metadata_locks_sees_at_least_itself(session: Session) -> None:
    assert server.sees_metadata_locks(session) is True


def test_a_denied_look_at_metadata_locks_is_left_to_privileges(account: Callable[..., Session],
                                                               found: Callable[..., list[Finding]]) -> None:
    blind = account("SELECT ON {schema}.*")

    assert server.facts(blind).sees_locks is None
    assert found(server, by=blind) == []
