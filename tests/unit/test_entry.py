"""Why a server does not let us in is named as what it is, and not blamed on the network."""

from __future__ import annotations

import ssl

import pymysql
import pytest
from sqlalchemy import make_url

from steps.errors import Unreachable
from steps.mysql import Session
from steps.target import Target


@pytest.mark.parametrize(("errno", "variable"), [(1040, "max_connections"), (1203, "max_user_connections"), (1226, "max_user_connections"),
                                              (1045, "REQUIRE X509"), (1049, "database in the URL"), (3159, "ssl_mode=REQUIRED"),
                                              (2026, "ssl_mode=DISABLED"), (1862, "new password")])
def test_a_limit_and_a_condition_of_entry_are_named(errno: int, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pymysql.err.OperationalError(errno, "too many")

    monkeypatch.setattr(pymysql, "connect", refuse)
    with pytest.raises(Unreachable, match=f"MySQL error {errno}") as raised:
        Session(Target(make_url("mysql+pymysql://a@127.0.0.1/b")))

    assert variable in raised.value.remedy
    assert "network" not in raised.value.remedy


@pytest.mark.parametrize(("code", "reason"), [(10, "its certificate is not valid now: certificate has expired"),
                                              (62, "its certificate is another host's"), (20, "its certificate was issued by nobody in"),
                                              (None, "TLS failed: ")])
def test_what_the_driver_calls_an_address_out_of_reach_is_told_as_the_certificate_it_is(code: int | None, reason: str,
                                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        cause = ssl.SSLError("no protocols available") if code is None else ssl.SSLCertVerificationError()
        if code is not None:
            cause.verify_code, cause.verify_message = code, "certificate has expired"  # type: ignore[attr-defined]
        error = pymysql.err.OperationalError(2003, "Can't connect")
        error.original_exception = cause
        raise error

    monkeypatch.setattr(pymysql, "connect", refuse)
    with pytest.raises(Unreachable, match="nothing was touched") as raised:
        Session(Target(make_url("mysql+pymysql://a@127.0.0.1/b")))

    assert raised.value.reason.startswith(reason)
    assert "network" not in raised.value.remedy
