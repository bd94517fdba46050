"""
A whole rollout with hostile names and values ends as one with plain ones does, or is refused before the first change (cases C78 to C80).

A few examples in `make test`, always the same; more by ROLLOUT_FUZZ_EXAMPLES (`make fuzz`).
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps.target import ENVIRONMENT
from tests.cli.calling import Call, caller
from tests.cli.conftest import quiet_afterwards  # noqa: F401  # used by being here
from tests.conftest import App, Target
from tests.fuzz import hostile
from tests.fuzz.hostile import Names, Words, literal, quoted

EXAMPLES = int(os.environ.get("ROLLOUT_FUZZ_EXAMPLES", "1"))
FEW = settings(max_examples=EXAMPLES, derandomize=EXAMPLES <= 10, deadline=None, database=None, print_blob=True,
               suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate))
ASKED = ("--by", "o'brien `x` %s", "--reason", "it's [due] %(x)s {} :x", "--no-prefect")
CLEANUP = ("--through", "cleanup", "--accept", "cleanup", "--accept", "cleanup-unseen")
QUOTES = Names("sh`op'\"%s", "jo`b'\"\\ %s {} :x", "i`d, (x)", "sta, tus'", 'st"ate\\', "done', 'at", "fin%(x)sished", "by `state`, x",
               "o'br`ien")
BACKTICKS = Names(old="sta`tus", new="st`ate", was="done`, `at", becomes="finished``at")
COMMENTS = Names("-- shop", "job /*! x */ #", "id -- x", "old;\nDROP", "new\n) ENGINE", "was /* x", "is */ x", "key\n-- x", "-- tool #")
WORDS = Names("select", "ORDER", "PRIMARY", "STATUS DEFAULT NOT NULL", "KEY", "INDEX", "COMMENT 'x'", "SELECT", "DEFAULT")
LONG = Names("s" * 42, "t" * 64, "k" * 64, "日" * 64, "\uffee" * 64, "w" * 64, "b" * 64, "é" * 64, "u" * 32)
MARKUP = Names("<b>|shop", "[/red]job[bold]", "[id]", "<script>old", "[link=x]new", "| was |", "&amp;is", "**index**", "[user]")
SAID = Words(("it's `x` \\", '100% "of" %s {} :x', "\\' -- /* x"), ("\\", "'", "é日 |/~^;:#"))
FILLED = Words(("a" * 191, "é" * 191, "%" * 191), ("'" * 191, "\\" * 191, "日" * 191))
ODD = Words(("", "NULL", "null"), ("\n", "\t", "\x01"))


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with provide(options=["--skip-log-bin"]) as server:
        yield server


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(monkeypatch, capsys)


class World:
    """One database with one table, a row of every old value, and who works on it."""

    def __init__(self, server: Server, found: Names, words: Words) -> None:
        self.names, self.words = replace(found, schema=f"{uuid.uuid4().hex[:20]}_{found.schema}"), words
        base = make_url(server.url)
        self.admin = App(Target(base), "")
        n = self.names
        self.table = f"{quoted(n.schema)}.{quoted(n.table)}"
        try:
            self.admin.run(f"CREATE DATABASE {quoted(n.schema)}")
            self.admin.run(self._create())
        except pymysql.err.MySQLError:
            self.close()
            assume(condition=False)  # no name of MySQL's
        self.url = (f"mysql://{quote(n.user, safe='')}:se%25cret@127.0.0.1:{base.port}/{quote(n.schema, safe='')}")
        self.account = f"{self.admin.connection.escape(n.user)}@'127.0.0.1'"
        self.admin.run(f"CREATE USER {self.account} IDENTIFIED BY 'se%cret'")
        self.admin.run(f"GRANT ALL ON *.* TO {self.account}")
        for number, value in enumerate((*words.old, *words.old)):
            self.write(f"r{number}", {n.old: value, n.was: None if number % 2 else value})

    def _create(self) -> str:
        n = self.names
        return (f"CREATE TABLE {self.table} ({quoted(n.key)} VARCHAR(32) NOT NULL, {quoted(n.old)} VARCHAR(191) NOT NULL DEFAULT "
                f"{literal(self.words.old[0])}, {quoted(n.was)} VARCHAR(300) NULL COMMENT 'it`s %s; -- x', PRIMARY KEY ({quoted(n.key)})) "
                "COLLATE utf8mb4_unicode_ci")

    def write(self, key: str, row: dict[str, str | None]) -> None:
        columns = ", ".join(map(quoted, (self.names.key, *row)))
        given = ", ".join("NULL" if value is None else literal(value) for value in (key, *row.values()))
        self.admin.run(f"INSERT INTO {self.table} ({columns}) VALUES ({given})")

    def rows(self, *columns: str) -> dict[str, tuple[Any, ...]]:
        listed = ", ".join(map(quoted, (self.names.key, *columns)))
        return {row[0]: row[1:] for row in self.admin.rows(f"SELECT {listed} FROM {self.table}")}

    def everything(self) -> dict[str, Any]:
        """Definition, rows and triggers of every table of the database, and its schemata beside it."""
        schema = quoted(self.names.schema)
        tables = [row[0] for row in self.admin.rows(f"SHOW TABLES FROM {schema}")]
        beside = {"databases": self.admin.rows("SHOW DATABASES LIKE '%rollout%'"),
                  "triggers": self.admin.rows(f"SHOW TRIGGERS FROM {schema}")}
        return beside | {name: (self.admin.rows(f"SHOW CREATE TABLE {schema}.{quoted(name)}"),
                                self.admin.rows(f"SELECT * FROM {schema}.{quoted(name)} ORDER BY 1")) for name in tables}

    def close(self) -> None:
        self.admin.run(f"DROP DATABASE IF EXISTS {quoted(self.names.schema)}")
        if hasattr(self, "account"):
            self.admin.run(f"DROP USER IF EXISTS {self.account}")
        self.admin.close()


@pytest.fixture
def lived(own: Server, call: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[[Names, Words], str]:
    """Takes a world through its whole life; returns `done`, or `refused` when nothing was touched; anything else fails."""

    def live(found: Names, words: Words) -> str:
        world = World(own, found, words)
        try:
            with tempfile.TemporaryDirectory() as folder:
                monkeypatch.setenv(ENVIRONMENT, world.url)
                return _life(world, call, str(hostile.write_plan(Path(folder), world.names, words)))
        finally:
            world.close()

    return live


def _life(world: World, call: Call, plan: str) -> str:
    n, words, before = world.names, world.words, world.everything()
    to_new, to_old = dict(zip(words.old, words.new, strict=True)), dict(zip(words.new, words.old, strict=True))

    def works(*said: str) -> str:
        answer = call(*said)
        assert answer.code == 0, f"{said[0]}: {answer.text}"
        return answer.out

    began = call("run", plan, *ASKED)
    if began.code in (2, 3):
        assert "othing was touched" in began.text or began.code == 2, began.text
        assert world.everything() == before
        return f"refused: {began.text}"
    assert began.code == 0, began.text
    old = world.rows(n.old, n.was)
    assert world.rows(n.new, n.becomes) == {key: (to_new[status], at) for key, (status, at) in old.items()}

    world.write("v0", {n.old: words.old[1], n.was: "x ' ` \\ %s"})
    world.write("v1", {n.new: words.new[2], n.becomes: "\U0001f600"})
    world.write("default", {})
    world.admin.run(f"UPDATE {world.table} SET {quoted(n.new)} = {literal(words.new[0])} WHERE {quoted(n.key)} = 'v0'")
    both = world.rows(n.old, n.new, n.was, n.becomes)
    assert both["v0"] == (words.old[0], words.new[0], "x ' ` \\ %s", "x ' ` \\ %s")
    assert both["v1"] == (words.old[2], words.new[2], "\U0001f600", "\U0001f600")
    assert both["default"] == (words.old[0], words.new[0], None, None)

    looks = n.table in (QUOTES.table, MARKUP.table)
    for looking in (("status", plan), ("status", plan, "--json"), ("plan", plan, "--sql"), ("check", plan), ("report", plan, "--json"),
                    ("report", plan, "--html", f"{plan}/report.html"), ("rehearse", plan)):
        if looks:
            works(*looking)
    assert not looks or "<script>old" not in Path(plan, "report.html").read_text()
    works("run", plan, *ASKED, *CLEANUP)
    assert world.rows(n.new, n.becomes) == {key: (row[1], row[3]) for key, row in both.items()}
    assert n.old not in [row[0] for row in world.admin.rows(f"SHOW COLUMNS FROM {world.table}")]

    works("rollback", plan, *ASKED, "--to", "v0", "--drop-added", "--accept", "discard-added")
    now = world.rows(n.old, n.was)
    assert now == {key: (to_old[row[1]], row[3]) for key, row in both.items()}
    for key in ("v0", "v1", "default"):
        world.admin.run(f"DELETE FROM {world.table} WHERE {quoted(n.key)} = '{key}'")
    works("uninstall", plan, "--yes", "--by", "ann", "--reason", "over", "--accept", "purge-archive")
    assert world.everything() == before
    return "done"


@pytest.mark.parametrize(("found", "words"), [(QUOTES, SAID), (COMMENTS, FILLED), (WORDS, ODD), (LONG, SAID), (MARKUP, Words())],
                         ids=["quotes", "comments", "words", "long", "markup"])
def test_a_rollout_with_hostile_names_and_values_ends_as_a_plain_one(lived: Callable[[Names, Words], str], found: Names,
                                                                     words: Words) -> None:
    ended = lived(found, words)

    assert ended == "done", ended


@FEW
@example(BACKTICKS, Words())
@given(hostile.names(), hostile.values())
def test_usable_names_and_values_end_as_plain_ones_do(lived: Callable[[Names, Words], str], found: Names, words: Words) -> None:
    """The server shows a trigger's text with its backticks undone, so pairs of columns that have any are refused beforehand."""
    ends = "refused" if any("`" in name for name in (found.old, found.new, found.was, found.becomes)) else "done"
    ended = lived(found, words)

    assert ended.startswith(ends), ended


@FEW
@example(replace(Names(), new="st\U0001f600te"), Words())
@example(replace(Names(), becomes="x\x00y"), Words())
@example(replace(Names(), index="by state "), Words())
@given(hostile.spoiled(), hostile.values())
def test_unusable_names_are_refused_and_nothing_is_touched(lived: Callable[[Names, Words], str], found: Names, words: Words) -> None:
    assert hostile.unusable_in(found)
    assert lived(found, words).startswith("refused")


@pytest.mark.parametrize("words", [Words(("\U0001f600", "b", "c")), Words(new=("\x00", "y", "z")), Words(("A", "a", "\u00e4"))],
                         ids=lambda words: repr(astuple(words))[:40])
def test_values_that_the_catalogue_cannot_show_end_well_or_are_refused(lived: Callable[[Names, Words], str], words: Words) -> None:
    assert lived(Names(), words).startswith(("done", "refused"))
