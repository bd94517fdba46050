"""Prefect's settings for every entry point, made before Prefect is imported: no analytics, short waits, our logger included."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

import structlog

from flows import login
from steps.masking import masked

SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "rollout",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_CLIENT_MAX_RETRIES": "1",
    "PREFECT_API_REQUEST_TIMEOUT": "5",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}


def prepare(*, quiet: bool = False) -> None:
    """Set what the user has not set; *quiet* keeps Prefect's own lines off the terminal (they still reach the API)."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    login.take()
    if quiet:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")


def _mask(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {key: masked(value) for key, value in event.items()}


def _line(_logger: Any, _method: str, event: structlog.typing.EventDict) -> str:
    """What happened first, for people; then what it was about, as KEY=VALUE."""
    return " ".join([str(event.pop("event", "")), *(f"{key}={value!r}" for key, value in event.items())])


def log_to(stream: Any = None, *, level: int = logging.INFO) -> None:
    """Structlog through the standard library's logger `rollout`, so that events reach the terminal and Prefect's run logs alike."""
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _mask, structlog.processors.format_exc_info, _line],
        logger_factory=structlog.stdlib.LoggerFactory(), wrapper_class=structlog.stdlib.BoundLogger, cache_logger_on_first_use=False)
    logger = logging.getLogger("rollout")
    logger.setLevel(logging.INFO)
    for handler in [h for h in logger.handlers if getattr(h, "_rollout", False)]:
        logger.removeHandler(handler)
    handler = logging.StreamHandler(stream or sys.stderr)
    formatter = logging.Formatter("%(asctime)s %(message)s", "%H:%M:%SZ")
    formatter.converter = time.gmtime  # the ledger's zone, wherever whoever reads it sits
    handler.setFormatter(formatter)
    handler.setLevel(level)
    handler._rollout = True  # type: ignore[attr-defined]  # noqa: SLF001  # marks our own, so that a second call replaces it
    logger.addHandler(handler)
    logger.propagate = False
