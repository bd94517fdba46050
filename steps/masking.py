"""The one place that knows secrets, so that no log, artifact, parameter, ledger row or error can show one (case C86)."""

from __future__ import annotations

import re
import shlex
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST_MASKED = 4
AFTER_CONTENT = re.compile(r"'.*'( (?:for (?:key|column|function)|value found) .*)", re.DOTALL)
_secrets: set[str] = set()
_variables: set[str] = set()


def remember(secret: str | None) -> None:
    """Mask *secret* and its URL, SQL, JSON and shell notations in every text that passes :func:`mask` from now on. Safe to repeat."""
    if secret and len(secret) >= SHORTEST_MASKED:
        slashed = secret.replace("\\", "\\\\")
        _secrets.update({secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1], secret.replace("'", "''"),
                         slashed.replace("'", "\\'"), slashed.replace('"', '\\"'), shlex.quote(secret)})


def keep_back(*names: str) -> None:
    """The environment variables *names* hold logins of ours: no program that we start is given them. Safe to repeat."""
    _variables.update(names)


def kept_back() -> frozenset[str]:
    """What :func:`keep_back` was told."""
    return frozenset(_variables)


def mask(text: str) -> str:
    """*text* without any remembered secret."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def masked(value: object) -> object:
    """:func:`mask` for every string inside *value* (dicts, lists and tuples are walked)."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


def without_contents(text: str) -> str:
    """*text* without what it quotes of a row, which may itself hold quotes; the names behind it are kept (case C86)."""
    cut, found = AFTER_CONTENT.subn(r"'…'\1", text, count=1)
    return cut if found else re.sub(r"'.*'?", "'…'", text, flags=re.DOTALL)
