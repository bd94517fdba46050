"""A limit of connections is named as one, and not blamed on the network."""

from __future__ import annotations

import pymysql
import pytest
from sqlalchemy import make_url

from steps.errors import Unreachable
from steps.mysql import Session
from steps.target import Target


@pytest.mark.parametrize(("errno", "variable"), [(1040, "max_connections"), (1203, "max_user_connections"), (1226, "max_user_connections")])
def test_a_limit_of_connections_is_named(errno: int, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pymysql.err.OperationalError(errno, "too many")

    monkeypatch.setattr(pymysql, "connect", refuse)
    with pytest.raises(Unreachable, match=f"MySQL error {errno}") as raised:
        Session(Target(make_url("mysql+pymysql://a@127.0.0.1/b")))

    assert variable in raised.value.remedy
    assert "network" not in raised.value.remedy
