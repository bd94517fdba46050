"""
Every kind of fault at points of every command, forward and back: `python -m tests.faults.matrix`, or `make faults`.

First the points that are chosen by name, the same every time; then as many drawn by lot, from a seed; then rounds with live traffic. A
line of JSON for each case goes into the journal, and what is in it already is not done again, so a run that was ended goes on where
it was. Ends with the table, and with 1 when anything is wrong; `--replay CASE` plays one case of it again and prints all that was said.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.faults import live, table, world
from tests.faults.cases import Case, chosen, drawn, of_key
from tests.faults.judge import Verdict, judged
from tests.faults.kinds import KINDS, surrounded

CASE_S = 240
SEED, DRAWN, LIVE = 20261130, 220, 6


def main() -> int:
    wish = _wish()
    if wish.worker is not None:
        work(wish)
        return 0
    if wish.replay:
        return replayed(wish)
    began = time.monotonic()
    arguments = [sys.executable, "-m", "tests.faults.matrix", *sys.argv[1:]]
    workers = [subprocess.Popen([*arguments, "--journal", str(wish.journal), "--worker", str(n)]) for n in range(wish.workers)]
    codes = [worker.wait() for worker in workers]
    verdicts = [line for line in _journal(wish.journal) if wish.only is None or wish.only in line["kind"]]
    table.show(verdicts, time.monotonic() - began)
    if wish.readme:
        table.into_readme(verdicts)
    return int(any(codes) or any(line["wrong"] for line in verdicts))


def _wish() -> argparse.Namespace:
    asked = argparse.ArgumentParser(prog="python -m tests.faults.matrix", description=__doc__)
    asked.add_argument("--seed", type=int, default=SEED, help="for the points drawn by lot")
    asked.add_argument("--drawn", type=int, default=DRAWN, help="how many points are drawn")
    asked.add_argument("--live", type=int, default=LIVE, help="how many rounds with live traffic")
    asked.add_argument("--only", help="kinds whose name has this in it")
    asked.add_argument("--replay", metavar="CASE", help="one case, as a failure prints it")
    asked.add_argument("--journal", type=Path, default=Path(".faults.jsonl"), help="where cases are noted; those in it are not done again")
    asked.add_argument("--workers", type=int, default=1, help="processes, each with a server of its own")
    asked.add_argument("--minutes", type=float, default=90, help="no case begins later than this")
    asked.add_argument("--readme", action="store_true", help="put the table into the README beside this file")
    asked.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return asked.parse_args()


def _journal(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def work(wish: argparse.Namespace) -> None:
    """Play this worker's share of what the journal does not have, in an order that enters each kind's surroundings once."""
    done, end = {line["case"] for line in _journal(wish.journal)}, time.monotonic() + wish.minutes * 60
    with world.opened() as standing:
        known = {command: standing.points(command) for command in world.COMMANDS}
    cases = [*chosen(known), *drawn(known, wish.seed, wish.drawn)]
    mine = [case for case in cases[wish.worker::wish.workers] if case.key not in done and (not wish.only or wish.only in case.kind)]
    _play_all(mine, wish.journal, end)
    for number in range(wish.worker, wish.live, wish.workers):
        case = live.key(wish.seed, number)
        if case not in done and not wish.only and time.monotonic() < end:
            _note(wish.journal, live.played(wish.seed, number))


def _play_all(cases: list[Case], journal: Path, end: float) -> None:
    """
    Kinds that need no surroundings come first, well mixed, so that a run that is ended early has seen something of each.

    A world in which something went wrong is not used again: what it leaves may spoil the next case.
    """
    surrounded_kinds = [name for name, kind in KINDS.items() if kind.around]
    mixed = random.Random(len(cases)).sample(cases, len(cases))
    left = sorted(mixed, key=lambda case: surrounded_kinds.index(case.kind) if case.kind in surrounded_kinds else -1)
    while left and time.monotonic() < end:
        try:
            with world.opened() as standing:
                while left and time.monotonic() < end:
                    if not _in_one_world(standing, left, journal, end):
                        break
        except Exception as error:  # noqa: BLE001  # what the harness cannot tear down is no reason to stop
            sys.stderr.write(f"the world did not end well: {error!r}\n")


def _in_one_world(standing: world.World, left: list[Case], journal: Path, end: float) -> bool:
    """Play the first of *left* and those behind it that see the same world; whether all was well."""
    around = KINDS[left[0].kind].around
    with surrounded(standing, KINDS[left[0].kind]) as seen:
        while left and KINDS[left[0].kind].around is around and time.monotonic() < end:
            verdict = _bounded(seen, left.pop(0))
            _note(journal, verdict)
            if verdict.wrong:
                return False
    return True


def _bounded(seen: world.World, case: Case) -> Verdict:
    """Judge *case*; one that takes too long, or breaks the harness, is wrong."""
    def over(*_: object) -> None:
        raise TimeoutError(f"the case took more than {CASE_S} s")

    signal.signal(signal.SIGALRM, over)
    signal.alarm(CASE_S)
    try:
        return judged(seen, KINDS[case.kind], case.point)
    except Exception as error:  # noqa: BLE001  # told with the case that broke it
        return Verdict(case.key, case.kind, case.point.name, wrong=[f"the harness: {error!r}"])
    finally:
        signal.alarm(0)


def _note(journal: Path, verdict: Verdict) -> None:
    with journal.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(verdict.to_json(), default=str) + "\n")
    if verdict.wrong:
        sys.stderr.write(f"WRONG {verdict.case} ({verdict.point}), codes {verdict.codes}\n" + "".join(f"  {w}\n" for w in verdict.wrong)
                         + f"  again: python -m tests.faults.matrix --replay '{verdict.case}'\n")


def replayed(wish: argparse.Namespace) -> int:
    """One case alone, with everything that was said."""
    if wish.replay.startswith(live.PREFIX):
        verdict = live.played(*live.of_key(wish.replay))
    else:
        with world.opened() as standing, surrounded(standing, KINDS[wish.replay.partition("/")[0]]) as seen:
            verdict = _bounded(seen, of_key(seen, wish.replay))
            sys.stdout.write((seen.folder / "log").read_text(errors="replace"))
    sys.stdout.write(json.dumps(verdict.to_json(), indent=2, default=str) + "\n")
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main())
