"""
The judge: holds what the clients were told against what the database says.

A job's writes form a chain (see :mod:`flows.demo.traffic.journal`); folding it gives the state the job must be in. A
write of unknown outcome forks the fold: with it and without it are both right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.demo.traffic.generations import GENERATIONS, NEW_SIDE, OLD_SIDE, TABLE, mapping
from flows.demo.traffic.journal import History, Read, Values, Write, plain, read_history
from flows.demo.traffic.session import Row, Session

CHUNK_ROWS = 500
State = Values | None  # None: the job is deleted


@dataclass(frozen=True, order=True)
class WrongRow:
    """A row that is not as it must be, and the column that shows it; `id` when the row is missing or should be."""

    id: str
    column: str


def fold(writes: Iterable[Write], start: State) -> list[State]:
    """Return every state the job may be in after *writes*; more than one only where an outcome is unknown."""
    states = {_told(start): start}
    for write in writes:
        after = {_told(state): state for state in (_applied(state, write) for state in states.values())}
        states = after if write.acked else states | after
    return list(states.values())


def _told(state: State) -> str:
    return repr(state and sorted(state.items()))


def beginning(chain: list[Write]) -> State:
    """Return what was before *chain*: nothing, when it begins with the job's creation; else a row of unknown contents."""
    return None if _made(chain) else {}


def _made(chain: list[Write]) -> bool:
    return bool(chain) and chain[0].kind in ("create", "replace")


def _applied(state: State, write: Write) -> State:
    if write.kind == "delete":
        return None
    before = {} if state is None or write.kind == "replace" else state
    after = {**before, **write.values}
    if GENERATIONS[write.generation].is_old and _same_old_word(before, after):
        after["state"] = before["state"]  # V0 wrote the word that stood there: nothing moved, and a finer new word stays
    return after


def _same_old_word(before: Values, after: Values) -> bool:
    words = mapping().to_old
    return "state" in before and words.get(before["state"]) is not None and words.get(before["state"]) == words.get(after["state"])


def run_twice(history: History) -> list[Write]:
    """Return the executions of jobs that were not queued since their last execution; history was never queued."""
    found = []
    for job, chain in history.chains.items():
        waiting = job in history.pending and not chain[0].queued
        for write in chain:
            if write.queued:
                waiting = True
            elif write.executed and write.acked and write.held < history.cut:
                found += [] if waiting else [write]
                waiting = False
    return found


def wrong_reads(history: History) -> list[Read]:
    """Return the detail reads that showed a state which no order of the writes around them explains."""
    return [read for read in history.reads if read.ended < history.cut and not _explained(read, history)]


def _explained(read: Read, history: History) -> bool:
    chain = history.chains.get(read.job, [])
    sure = [number for number, write in enumerate(chain, 1) if write.acked and write.acked < read.begun]
    earliest, latest = max(sure, default=0), sum(write.held < read.ended for write in chain)
    if not _made(chain) and not any("state" in write.values for write in chain[:earliest]):
        return True  # nobody wrote down in which state the traffic found it
    sees = GENERATIONS[read.generation].may_see
    for number in range(earliest, latest + 1):
        for state in fold(chain[:number], beginning(chain)):
            if state is not None and "state" not in state:
                return True
            if read.saw is None if state is None else read.saw in sees(state["state"]):
                return True
    return False


def final_check(url: str, folder: Path, *, old_side_only: bool = False) -> list[WrongRow]:
    """
    Hold every remembered job's row against its last acknowledged write, as each generation would see it.

    To be called when all clients have ended. Columns that do not exist are not judged; with *old_side_only* nor are
    the new ones, for a table whose added columns nobody keeps in step any more.
    """
    history, wrong = read_history(folder), []
    session = Session(url, "traffic-judge")
    jobs = sorted(history.chains)
    for first in range(0, len(jobs), CHUNK_ROWS):
        chunk = jobs[first : first + CHUNK_ROWS]
        places = ", ".join(["%s"] * len(chunk))
        rows = {row["id"]: row for row in session.rows(f"SELECT * FROM `{TABLE}` WHERE `id` IN ({places})", *chunk)}
        for job in chunk:
            chain = history.chains[job]
            states = fold(chain, beginning(chain))
            columns = _wrong_columns(rows.get(job), states, old_side_only=old_side_only)
            wrong += [WrongRow(job, column) for column in sorted(columns)]
    session.close()
    return wrong


def _wrong_columns(row: Row | None, states: list[State], *, old_side_only: bool) -> set[str]:
    left_out = set(NEW_SIDE.values()) if old_side_only else set()
    judged = row and {column: value for column, value in row.items() if column not in left_out}
    best = min((_differing(judged, state) for state in states), key=len)
    return best | _disagreeing(judged or {})


def _differing(row: Row | None, state: State) -> set[str]:
    """Return the columns in which *row* is not what *state* makes it in either generation's words."""
    if row is None or state is None:
        return set() if row is state else {"id"}
    allowed = {column: words for name, value in state.items() for column, words in _allowed(name, value).items()}
    return {column for column, words in allowed.items() if column in row and plain(column, row[column]) not in words}


def _allowed(name: str, value: Any) -> dict[str, Iterable[Any]]:
    if name == "state":
        return {OLD_SIDE[name]: mapping().old_words(value), NEW_SIDE[name]: [value]}
    return {side.get(name, name): [value] for side in (OLD_SIDE, NEW_SIDE)}


def _disagreeing(row: Row) -> set[str]:
    """Return the new columns of *row* that do not agree with their old ones, where both exist."""
    found = set()
    for name, new in NEW_SIDE.items():
        old = OLD_SIDE[name]
        if old in row and new in row:
            same = mapping().agree(row[old], row[new]) if name == "state" else row[old] == row[new]
            found |= set() if same else {new}
    return found
