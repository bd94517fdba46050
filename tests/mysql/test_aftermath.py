"""After a lost connection the server is asked, on a new one, once it has let go of the statement (case C84)."""

from __future__ import annotations

import pytest

from steps import aftermath
from steps.errors import Drifted
from steps.mysql import Session
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Aside, Clients, until

AT_WORK = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DO SLEEP%'"


def test_a_statement_that_works_on_is_waited_for_before_anybody_looks(empty: Target, clients: Clients) -> None:
    left_alone, other = clients(), clients()
    number = left_alone.value("SELECT CONNECTION_ID()")
    aside = Aside(left_alone, "DO SLEEP(0.4)")
    until(lambda: other.value(AT_WORK))

    assert aftermath.happened(empty, number, lambda session: session.value(AT_WORK) == 0) is True
    assert aside.join().error is None


@pytest.mark.parametrize("answer", [True, False])
def test_what_the_catalogue_says_is_what_happened(empty: Target, job: App, answer: bool) -> None:
    job.run("ALTER TABLE job ADD COLUMN n INT" if answer else "DO 1")

    def look(session: Session) -> bool:
        return bool(session.value("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'n'"))

    assert aftermath.happened(empty, 4_000_000, look) is answer


def test_a_table_that_stands_nowhere_has_not_got_there(empty: Target) -> None:
    def nowhere(_: Session) -> bool:
        raise Drifted("table job", "stands on no stair")

    assert aftermath.happened(empty, 4_000_000, nowhere) is False


def test_where_nobody_answers_nothing_is_said_and_the_asking_ends(empty: Target, slept: list[float]) -> None:
    nobody = Target(empty.url.set(port=1))

    assert aftermath.happened(nobody, 1, lambda _: True) is None
    assert slept[0] < slept[3] <= slept[-1] == aftermath.LONGEST_WAIT_S
    assert len(slept) == aftermath.TRIES
