"""Errors compare by value, survive pickling, and know their exit code."""

from __future__ import annotations

import inspect
import pickle

import pytest

from steps import errors
from steps.errors import EXIT_CODES, ConnectionLost, DeploySystemAway, LockTimeout, RolloutError, StatementFailed

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RolloutError)]
STATEMENT = [kind for kind in CLASSES if issubclass(kind, StatementFailed)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling_with_equal_fields_and_text(kind: type[RolloutError]) -> None:
    error = kind("table t", "is 100% wrong", "mend it")

    back = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes

    assert (type(back), back.args, str(back), back.remedy) == (kind, error.args, str(error), "mend it")


@pytest.mark.parametrize("kind", STATEMENT, ids=lambda kind: kind.__name__)
def test_the_servers_number_survives_pickling(kind: type[StatementFailed]) -> None:
    back = pickle.loads(pickle.dumps(kind("SELECT 1", "MySQL error 1205: …", "", 1205)))  # noqa: S301

    assert (back.errno, back.args) == (1205, ("SELECT 1", "MySQL error 1205: …", "", 1205))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_exit_code_is_explained(kind: type[RolloutError]) -> None:
    assert kind.exit_code in EXIT_CODES
    assert kind.exit_code != 0


def test_only_outcomes_that_the_server_undid_or_that_are_unknown_may_be_tried_again() -> None:
    assert {kind for kind in CLASSES if kind.retryable} == {LockTimeout, ConnectionLost, DeploySystemAway}


@pytest.mark.parametrize(("remedy", "text"), [("mend it", "table t: is wrong; mend it"), ("", "table t: is wrong")])
def test_the_text_is_made_of_the_fields(remedy: str, text: str) -> None:
    assert str(errors.Refused("table t", "is wrong", remedy)) == text
