"""Addresses in a plan: http or https, never with credentials in them, and https wherever a token travels."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _an_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is no http or https address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has credentials in it; a plan never holds any")
    return url


def _a_safe_address(url: str) -> str:
    parts = urlsplit(_an_address(url))
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError("a token would travel in clear; use https")
    return url


Address = Annotated[str, AfterValidator(_an_address)]
SafeAddress = Annotated[str, AfterValidator(_a_safe_address)]
