"""Names and values nobody should have and somebody has, and a small plan that carries them all."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

PIECES = ("a", "Z", "_", "$", "0", "`", "``", "'", "''", '"', "\\", "\\'", "%", "%%", "%s", "%(x)s", "{}", "{x}", "${x}", ":x", "::", "?",
          "@", "@@x", "#", "--", "-- ", "/*", "*/", "/*!", ";", ",", ", ", "(", ")", ".", "/", "~", " ", "\n", "\t", "\r", "\x01", "\x7f",
          "é", "ß", "İ", "日", "\u200b", "\ufeff", "select", "ORDER", "KEY", "PRIMARY", "INDEX", "DELIMITER", "NOT NULL", "DEFAULT",
          " COMMENT ", "_gone_", "[b]", "[/]", "<script>", "|", "&amp;", "$$")
UNUSABLE = ("\x00", "\U0001f600", "x" * 65, "ends in a space ")
LONGEST = 64
LONGEST_USER = 32
LONGEST_VALUE = 191


@dataclass(frozen=True)
class Names:
    """Everything of the little world that has a name; *new*, *becomes* and *index* come with the plan."""

    schema: str = "shop"
    table: str = "job"
    key: str = "id"
    old: str = "status"
    new: str = "state"
    was: str = "doneAt"
    becomes: str = "finishedAt"
    index: str = "by_state"
    user: str = "tool"


@dataclass(frozen=True)
class Words:
    """Three old values and the three new ones that they become; the first of each is the column's default."""

    old: tuple[str, ...] = ("pending", "done", "failed")
    new: tuple[str, ...] = ("waiting", "ended", "broken")


def is_usable(name: str) -> bool:
    return 0 < len(name) <= LONGEST and "\x00" not in name and not name.endswith(" ") and all(ord(c) < 0x10000 for c in name)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    """*value* as SQL that means the same under every sql_mode."""
    return f"_utf8mb4 x'{value.encode().hex()}'" if value else "''"


def written_literal(value: str) -> str:
    """*value* as a person writes it into a plan's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\x00", "\\0") + "'"


def toml(value: str) -> str:
    return json.dumps(value).replace("\x7f", "\\u007f")


def write_plan(folder: Path, names: Names, words: Words) -> Path:
    """A plan with a step, a rename and a late index, maps both ways, and a smoke query over all of them."""
    table, new = quoted(names.table), quoted(names.new)
    column = f"ADD COLUMN {new} VARCHAR(191) NOT NULL DEFAULT {written_literal(words.new[0])} AFTER {quoted(names.old)}"
    files = {"010_add.up.sql": f"ALTER TABLE {table} {column}", "010_add.down.sql": f"ALTER TABLE {table} DROP COLUMN {new}",
             "020_index.up.sql": f"ALTER TABLE {table} ADD INDEX {quoted(names.index)} ({new}, {quoted(names.key)})",
             "020_index.down.sql": f"ALTER TABLE {table} DROP INDEX {quoted(names.index)}",
             "all.query.sql": f"-- expect: no rows\nSELECT {quoted(names.key)} FROM {table} WHERE {new} IS NULL "
                              f"AND {quoted(names.becomes)} = ':x %s'"}
    for name, text in files.items():
        (folder / name).write_text(text + "\n", newline="")

    def pairs(sides: zip[tuple[str, str]]) -> str:
        return "{ " + ", ".join(f"{toml(one)} = {toml(other)}" for one, other in sides) + " }"

    (folder / "plan.toml").write_text(f"""
[plan]
id = "small"
table = {toml(names.table)}

[[pre_deploy.step]]
ddl = "010_add"

[[pre_deploy.step]]
rename = {{ from = {toml(names.was)}, to = {toml(names.becomes)} }}

[[pre_deploy.step]]
ddl = "020_index"
after = "first_pass"

[[sync]]
old = {toml(names.old)}
new = {toml(names.new)}
to_new = {pairs(zip(words.old, words.new, strict=True))}
to_old = {pairs(zip(words.new, words.old, strict=True))}

[verify]
queries = ["*.query.sql"]

[cleanup]
drop = [{toml(names.old)}]
min_age_s = 0
observe_s = 0
cooling_s = 0
deploy = "true"
rollback_deploy = "true"

[deploy]
command = "true"
rollback_command = "true"
""", newline="")
    return folder


def text(longest: int, shortest: int = 1) -> st.SearchStrategy[str]:
    """Pieces put together, some of them to their very last letter."""
    put = st.lists(st.sampled_from(PIECES), min_size=shortest, max_size=8).map("".join)
    filled = put.map(lambda found: (found * longest)[:longest] if found else "")
    return st.one_of(put, put, filled).map(lambda found: found[:longest])


def name(longest: int = LONGEST) -> st.SearchStrategy[str]:
    return text(longest).map(lambda found: found.rstrip(" ") or "x")


def names() -> st.SearchStrategy[Names]:
    """Names that MySQL has no objection to in themselves; columns differ by more than case."""
    return st.builds(Names, schema=name(LONGEST - 22), table=name(), key=name(), old=name(), new=name(), was=name(), becomes=name(),
                     index=name(), user=name(LONGEST_USER).map(_one_line)).map(_apart)


def _one_line(user: str) -> str:
    """The server's own login takes no line breaks at an end of an account's name."""
    return user.strip() or "u"


def _apart(found: Names) -> Names:
    """A letter at the end of those columns that would be the same to MySQL."""
    taken = set[str]()
    changed = {}
    for number, field in enumerate(("key", "old", "new", "was", "becomes")):
        wanted = getattr(found, field)
        if wanted.casefold() in taken:
            wanted = wanted[: LONGEST - 1] + str(number)
        taken.add(wanted.casefold())
        changed[field] = wanted
    index = found.index if found.index.upper() != "PRIMARY" else "PRIMARY_"
    return replace(found, **changed, index=index)


def values() -> st.SearchStrategy[Words]:
    side = st.lists(text(LONGEST_VALUE, 0), min_size=3, max_size=3, unique=True).map(tuple)
    return st.builds(Words, old=side, new=side)


def unusable_in(found: Names) -> list[str]:
    return [one for one in astuple(found) if not is_usable(one)]


def spoiled() -> st.SearchStrategy[Names]:
    """One of the names that the plan brings is none that MySQL or the tool can carry."""
    fields = st.sampled_from(("new", "becomes", "index"))
    return st.builds(lambda found, field, bad: replace(found, **{field: bad}), names(), fields, st.sampled_from(UNUSABLE))
