"""What connections of one test session share."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest


@pytest.fixture(scope="session", autouse=True)
def one_tls_context() -> Iterator[None]:
    """PyMySQL reads the system's certificates for every connection, 30 ms each; here once will do."""
    made: dict[str, object] = {}
    real = pymysql.connections.Connection._create_ssl_ctx

    def once(connection: pymysql.connections.Connection, sslp: object) -> object:
        if repr(sslp) not in made:
            made[repr(sslp)] = real(connection, sslp)
        return made[repr(sslp)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pymysql.connections.Connection, "_create_ssl_ctx", once)
        yield
