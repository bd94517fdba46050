"""A pass in equal stretches of time, bounded whatever it did."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steps.intervals import MOST, Chunk, intervals
from steps.pace import Pace


def test_rates_and_times_are_of_each_stretch_and_empty_ones_are_left_out() -> None:
    chunks = [Chunk(0.05, 100, 0.05), Chunk(0.09, 100, 0.03), Chunk(3.0, 50, 0.2), Chunk(4.0, 10, 0.1)]

    assert intervals(chunks) == [[0.0, 0.1, 200, 50.0, 50.0], [3.0, 0.1, 50, 200.0, 200.0], [3.9, 0.1, 10, 100.0, 100.0]]
    assert intervals([]) == []


@given(st.lists(st.builds(Chunk, st.floats(0, 1e6), st.integers(0, 10_000), st.floats(0, 60)), min_size=1, max_size=300))
def test_no_row_is_lost_and_no_more_than_so_many_stretches_are_kept(chunks: list[Chunk]) -> None:
    found = intervals(chunks)

    assert len(found) <= MOST
    assert sum(rows for _, _, rows, _, _ in found) == sum(chunk.rows for chunk in chunks)
    assert all(median <= slow for *_, median, slow in found)


def test_a_pass_of_many_chunks_records_little() -> None:
    pace = Pace("first", lambda _: None)
    pace.begin(1, 0, 0, 1000)
    for _ in range(5000):
        pace.did(10, 10, 0.01)

    assert len(str(pace.summary())) < 5000
