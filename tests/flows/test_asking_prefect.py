"""Whether a run waits in Prefect is asked of an API that may be in trouble."""

from __future__ import annotations

import uuid
from typing import Any

import pytest


def test_an_api_that_lets_nobody_in_is_taken_for_one_where_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import suspended

    def refused(_: float) -> Any:
        raise RuntimeError("401")

    monkeypatch.setattr(suspended.api, "address", lambda: "http://127.0.0.1:9/api")
    monkeypatch.setattr(suspended.api, "why_not", lambda: None)
    monkeypatch.setattr(suspended.api, "client", refused)

    assert suspended.suspended(str(uuid.uuid4())) is False
    assert suspended.resume([str(uuid.uuid4())], lambda _: {}).trouble
