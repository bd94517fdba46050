"""What the digests show, and what they cannot show, of users of the old columns."""

from __future__ import annotations

from steps.usage import Seen, between, broke

NAMES = "SELECT `id` , `status` FROM `AiAnalysisJob` WHERE `id` = ?"
OTHER = "SELECT `id` , `lifecycleStatus` FROM `AiAnalysisJob`"


def seen(*digests: tuple[str, int, int], lost: int = 0, uptime_s: int = 10, errors: int = 0) -> Seen:
    return Seen({text: (text, count, wrong) for text, count, wrong in digests}, lost, uptime_s, errors, 1024)


def test_a_statement_that_names_an_old_column_is_a_user_only_if_it_ran_in_the_window() -> None:
    ran = between(seen((NAMES, 1, 0)), seen((NAMES, 2, 0)), "AiAnalysisJob", ("status",))
    silent = between(seen((NAMES, 2, 0)), seen((NAMES, 2, 0), (OTHER, 9, 0)), "AiAnalysisJob", ("status",))

    assert len(ran.users) == 1
    assert (silent.users, silent.unseen) == ((), ())


def test_what_cannot_be_seen_is_said_and_is_no_answer() -> None:
    cut = "SELECT `AiAnalysisJob` . `" + "x" * 1000
    found = between(seen(), seen((cut, 1, 0), ("SELECT * FROM `AiAnalysisJob`", 1, 0), lost=3, uptime_s=5), "AiAnalysisJob", ("status",))

    assert found.users == ()
    assert [line.split(" ")[0] for line in found.unseen] == ["the", "3", "1", "1"]
    assert between(None, seen(), "AiAnalysisJob", ("status",)).unseen[0].startswith("statement digests cannot be read")


def test_errors_of_missing_columns_count_only_when_they_came_on_this_table() -> None:
    before = seen((NAMES, 1, 0))

    assert "2 errors" in (broke(before, seen((NAMES, 3, 2), errors=2), "AiAnalysisJob") or "")
    assert broke(before, seen((NAMES, 3, 0), errors=2), "AiAnalysisJob") is None
    assert broke(before, seen((NAMES, 3, 2), errors=0), "AiAnalysisJob") is None
    assert "digests were lost" in (broke(before, seen(errors=1, lost=1), "AiAnalysisJob") or "")


def test_a_keyword_that_a_client_left_unquoted_is_seen_as_the_column_it_names() -> None:
    """MySQL writes `jobType , STATUS ,` for an unquoted status."""
    unquoted = "UPDATE `AiAnalysisJob` SET STATUS = ? WHERE `id` = ?"

    assert len(between(seen(), seen((unquoted, 1, 0)), "AiAnalysisJob", ("status",)).users) == 1
