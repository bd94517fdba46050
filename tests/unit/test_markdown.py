"""Markdown pages: what others wrote is shown and not obeyed, and what does not fit is told and not just gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.markdown import LONGEST_BYTES, Page, code, fenced, table, words
from flows.visible import cut, duration, number, visible
from steps.masking import remember
from tests.reading import READ, kinds, shown, tokens
from tests.trails import HOSTILE


@given(st.text(min_size=1))
@pytest.mark.parametrize("form", ["By **{}**: x", "- **{}**: {}", "| {} | {} |\n|---|---|\n| {} | {} |"])
def test_no_text_becomes_markup(form: str, text: str) -> None:
    plain, given_text = kinds(form.replace("{}", "word")), kinds(form.replace("{}", words(text) or "word"))

    assert given_text <= plain | {"text_special", "softbreak"}


def test_a_hostile_name_reads_as_itself() -> None:
    said = shown(f"By {words(HOSTILE)}")

    assert "<script>alert(1)</script> ![x](http://evil.example/y.png) | `cell` **bold** [link](javascript:alert(1))" in said
    assert "⟨U+202E⟩gnp.exe" in said
    assert "⟨U+001B⟩[31m" in said
    assert "数据" in said


@given(st.text(alphabet="`a|b \n", max_size=40))
def test_code_and_fences_end_where_they_should(text: str) -> None:
    [fence] = [token for token in READ.parse(f"{fenced(text)}\n\nafter") if token.type == "fence"]
    assert fence.content == f"{text}\n"
    inline = [token for token in tokens(f"a {code('x' + text)} b") if token.type == "code_inline"]
    assert [one.content.strip() for one in inline] == [" ".join(f"x{text}".split())]


def test_a_table_keeps_its_columns_whatever_is_in_a_cell() -> None:
    lines = table(("a", "b"), [("x | y", HOSTILE), (None, 1)])

    assert [sum(token.type == "td_open" for token in tokens("\n".join(lines)))] == [4]
    assert len(lines) == 4


def test_a_page_keeps_what_comes_first_and_tells_what_was_left_out() -> None:
    page = Page("rollout report p")
    page.add("# title")
    page.part("Steps", [f"- {'x' * 1000} {number}" for number in range(100)], "steps")
    page.part("SQL", [fenced("y" * 5000)] * 20, "statements", last=True)
    page.part("More", ["- z"], "things")
    text = str(page)

    assert len(text.encode()) <= LONGEST_BYTES
    steps, shown = text.count("x" * 1000), text.count("y" * 5000)
    assert 20 <= steps <= 25  # half of the room, so that the statements have some
    assert f"*{100 - steps} of 100 steps left out here; all of them: `rollout report p`*" in text
    assert 3 <= shown < 20
    assert f"*{20 - shown} of 20 statements left out here; all of them: `rollout report p`*" in text
    assert text.count("```") % 2 == 0  # cut between fences, never in one


def test_a_page_of_wide_letters_is_counted_in_bytes() -> None:
    page = Page("c", most=3000)
    page.part("T", ["数" * 500] * 3, "lines")

    assert len(str(page).encode()) <= 3000
    assert "3 of 3 lines left out" in str(page)


def test_nothing_is_shown_for_a_part_that_is_empty() -> None:
    page = Page("c")
    page.part("T", [], "lines")

    assert str(page).strip() == ""


def test_a_long_text_says_how_much_of_it_is_missing() -> None:
    assert cut("x" * 12, 10) == "xxxxxxxxxx… (2 more characters)"
    assert "(4,000 more characters)" in fenced("z" * 10_000)


def test_what_is_not_seen_or_turns_others_round_is_spelled_out() -> None:
    assert visible("a\u202eb\u200bc\x00d\ue000\ud800\n\te") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0000⟩d⟨U+E000⟩⟨U+D800⟩\n\te"
    assert visible("Łódź 数据 😀 é") == "Łódź 数据 😀 é"


@pytest.mark.parametrize(("seconds", "said"), [(0.0123, "12 ms"), (1.25, "1.2 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"),
                                               (5400, "1 h 30 min"), (86400 * 3 + 7200, "3 d 2 h")])
def test_durations_are_told_in_two_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(("value", "said"), [(None, ""), (0, "0"), (1.25, "1.2"), (12.7, "13"), (1234567, "1,234,567")])
def test_numbers_are_told_as_people_write_them(value: float | None, said: str) -> None:
    assert number(value) == said


def test_a_secret_of_marks_is_masked_before_it_is_escaped() -> None:
    remember("a|b*c`d<e")

    for made in (words("x a|b*c`d<e y"), code("a|b*c`d<e"), fenced("SET x = 'a|b*c`d<e'")):
        assert "b" not in made.replace("sql", "")
