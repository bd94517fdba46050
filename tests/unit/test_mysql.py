"""Names are quoted in one place, and no text that is built depends on the server's sql_mode (cases C77 to C80)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps import masking
from steps.errors import Refused
from steps.mysql import VALUE, byte_literal, literal, quote, shown


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=64)
       .filter(lambda name: not name.endswith(" ")))
def test_a_usable_name_is_quoted_so_that_it_reads_back(name: str) -> None:
    quoted = quote(name)

    assert quoted[0] == quoted[-1] == "`"
    assert re.fullmatch("(?:[^`]|``)*", quoted[1:-1])
    assert quoted[1:-1].replace("``", "`") == name
    assert VALUE not in quoted


@pytest.mark.parametrize("name", ["", "x" * 65, "a\x00b", "trailing ", "emoji 😀", "\x00?"])
def test_a_name_that_mysql_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="is not a usable MySQL identifier"):
        quote(name)


@given(st.text(max_size=20))
def test_a_literal_needs_no_escape_under_any_sql_mode(text: str) -> None:
    plain = all(" " <= c <= "~" and c not in "'\\" for c in text)

    for made in (literal(text), byte_literal(text)):
        assert re.fullmatch(r"'[ !#-&(-\[\]-~\"]*'|x'[0-9a-f]*'|CONVERT\(x'[0-9a-f]*' USING utf8mb4\)", made)
        assert made == f"'{text}'" if plain else text.encode().hex() in made


def test_shown_sql_has_marks_for_values_and_no_secret() -> None:
    masking.remember("hunter22")

    assert shown(f"SELECT {VALUE}, 'hunter22', '100%'") == "SELECT ?, '***', '100%'"
