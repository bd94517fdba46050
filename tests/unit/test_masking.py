"""No text shows a remembered secret, in whatever form it stands there."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps import masking
from steps.masking import MASK, mask, masked, remember

SECRET = "p@ss w'rd/é\\"


@pytest.mark.parametrize("shown", [SECRET, quote(SECRET, safe=""), quote_plus(SECRET), repr(SECRET)[1:-1], SECRET.replace("'", "''")])
def test_every_form_of_a_secret_is_masked(shown: str) -> None:
    remember(SECRET)

    assert mask(f"mysql://u:{shown}@h/d") == f"mysql://u:{MASK}@h/d"


def test_a_secret_that_holds_another_is_masked_whole() -> None:
    remember("abcd")
    remember("abcdefgh")

    assert mask("x abcdefgh y abcd") == f"x {MASK} y {MASK}"


def test_all_strings_inside_a_value_are_masked_and_the_rest_is_kept() -> None:
    remember("hunter22")

    assert masked({"a": ["hunter22", 1, None], "b": ("x hunter22",)}) == {"a": [MASK, 1, None], "b": [f"x {MASK}"]}


@pytest.mark.parametrize("short", [None, "", "abc"])
def test_what_is_too_short_to_be_a_secret_is_not_masked_all_over(short: str | None) -> None:
    remember(short)

    assert mask("abc and more") == "abc and more"


@given(st.text(min_size=4, max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_no_secret_survives(secret: str, before: str, after: str) -> None:
    masking._secrets.clear()
    remember(secret)

    assert secret not in mask(before + secret + after).replace(MASK, "\x01")
