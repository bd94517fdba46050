"""A shape says everything about a table, so that its texts make the same objects again (case C30)."""

from __future__ import annotations

from typing import Any

from steps import catalogue
from steps.catalogue import Shape, differences, unjudged
from steps.mysql import Session, quote
from tests.conftest import App

COLUMNS = {
    "plain": "VARCHAR(191) NOT NULL",
    "collated": "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT 'std' COMMENT 'kind'",
    "latin": "VARCHAR(32) CHARACTER SET latin1 COLLATE latin1_german1_ci NULL DEFAULT 'é'",
    "ascii": "CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL",
    "quoted": "VARCHAR(64) NOT NULL DEFAULT 'it''s \\\\ %s ?:x \"q\"' COMMENT 'a ''quoted'' \\\\ comment'",
    "accents": "VARCHAR(64) NOT NULL DEFAULT 'éß日' COMMENT 'éß日'",
    "hexlike": "VARCHAR(64) NOT NULL DEFAULT '0x41'",
    "bitlike": "VARCHAR(64) NOT NULL DEFAULT 'b''1'",
    "blank": "VARCHAR(64) NOT NULL DEFAULT ''",
    "nulled": "VARCHAR(64) NULL DEFAULT NULL",
    "milli": "DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
    "stamp": "TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6)",
    "whole": "DATETIME NOT NULL DEFAULT '2001-02-03 04:05:06'",
    "born": "DATE NOT NULL DEFAULT (CURRENT_DATE)",
    "big": "BIGINT UNSIGNED NOT NULL DEFAULT '18446744073709551615'",
    "minus": "INT NOT NULL DEFAULT '-1'",
    "money": "DECIMAL(20,4) NOT NULL DEFAULT '-0.5000'",
    "ratio": "DOUBLE NULL DEFAULT '0.1'",
    "flag": "TINYINT(1) NOT NULL DEFAULT '0'",
    "bits": "BIT(3) NOT NULL DEFAULT b'101'",
    "bytes": "BINARY(4) NOT NULL DEFAULT 'ab'",
    "raw": "VARBINARY(16) NULL DEFAULT 0xFF80",
    "pick": "ENUM('a','b''c','d,e') NOT NULL DEFAULT 'b''c'",
    "many": "SET('x','y') NOT NULL DEFAULT 'x,y'",
    "doc": "JSON NULL DEFAULT (JSON_OBJECT('a', 'it''s \\\\'))",
    "uid": "VARCHAR(36) NOT NULL DEFAULT (UUID())",
    "body": "MEDIUMTEXT NULL DEFAULT (CONCAT('a', 'b'))",
    "made": "INT GENERATED ALWAYS AS (`minus` + 1) VIRTUAL",
    "kept": "VARCHAR(80) GENERATED ALWAYS AS (CONCAT(`plain`, '-it''s\\\\-')) STORED NOT NULL",
    "hidden": "INT NOT NULL DEFAULT '7' INVISIBLE",
    "shy": "DATETIME(3) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3) INVISIBLE COMMENT 'shy'",
    "place": "POINT NOT NULL SRID 4326",
    "year": "YEAR NULL DEFAULT '2001'",
    "upPlain": "VARCHAR(191) NULL",
    "upBig": "BIGINT UNSIGNED NULL",
    "100%": "INT NULL",
    "we`ird ä": "INT NULL",
}
INDEXES = {
    "by prefix": "INDEX (`plain`(10), `big` DESC)",
    "uniq": "UNIQUE INDEX (`minus`, `flag`)",
    "functional": "INDEX ((LOWER(`plain`)) DESC, `big`)",
    "with literal": "INDEX ((CONCAT(`plain`, 'it''s')))",
    "json": "INDEX ((CAST(`doc`->>'$.a' AS CHAR(32)) COLLATE utf8mb4_bin))",
    "unseen": "INDEX (`year`) INVISIBLE",
    "words": "FULLTEXT INDEX (`body`)",
    "spots": "SPATIAL INDEX (`place`)",
    "up": "INDEX (`upPlain`, `upBig`)",
    "by pair": "INDEX (`minus`, `hidden`)",
    "by`tick": "INDEX (`we``ird ä`)",
}
CHECKS = {"positive": "CHECK ((`flag` >= 0))",
          "quoted check": "CHECK ((`plain` <> 'it''s'))", "asleep": "CHECK ((`minus` < 9)) NOT ENFORCED"}


def make(client: App, shape: dict[str, dict[str, str]], table: str) -> None:
    """Make *table* of exactly these texts."""
    parts = [f"{quote(name)} {definition}" for name, definition in shape["columns"].items()]
    for name, definition in shape["indexes"].items():
        parts.append(definition if name == "PRIMARY" else definition.replace("INDEX", f"INDEX {quote(name)}", 1))
    for kind, prefix in (("foreign_keys", table), ("checks", table)):
        parts += [f"CONSTRAINT {quote(f'{prefix}_{name}')} {definition}" for name, definition in shape[kind].items()]
    with client.connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {quote(table)} ({', '.join(parts)}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci")


def renamed(names: dict[str, str], start: int) -> dict[str, str]:
    return {name[start:]: definition for name, definition in names.items()}


def test_a_table_made_from_its_shape_has_the_same_shape(session: Session, clients: Any) -> None:
    client = clients()
    client.run("CREATE TABLE parent (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))")
    wanted = {"columns": COLUMNS, "indexes": {"PRIMARY": "PRIMARY KEY (`plain`, `big`)", **INDEXES}, "checks": CHECKS, "foreign_keys": {
        "both": "FOREIGN KEY (`minus`, `hidden`) REFERENCES `parent` (`a`, `b`) ON DELETE CASCADE ON UPDATE RESTRICT",
        "self": "FOREIGN KEY (`upPlain`, `upBig`) REFERENCES `one` (`plain`, `big`) ON DELETE NO ACTION ON UPDATE NO ACTION"}}
    make(client, wanted, "one")
    one = catalogue.shape(session, str(session.schema), "one")
    again = {kind: {name.removeprefix("one_"): text.replace("`one`", "`two`") for name, text in getattr(one, kind).items()}
             for kind in catalogue.KINDS}
    make(client, again, "two")
    two = catalogue.shape(session, str(session.schema), "two")

    assert two.columns == one.columns
    assert list(two.columns) == list(COLUMNS)
    assert two.indexes == one.indexes
    assert renamed(two.foreign_keys, 4) == {name[4:]: text.replace("`one`", "`two`") for name, text in one.foreign_keys.items()}
    assert renamed(two.checks, 4) == renamed(one.checks, 4)
    lines = [sorted(line.strip(" ,") for line in client.create_table(table).replace("two", "one").splitlines()) for table in ("one", "two")]
    assert lines[0] == lines[1]


def test_a_second_column_made_from_a_columns_text_has_the_same_text(session: Session, clients: Any) -> None:
    """So a rename adds its second column: charset, precision, comment and all (C30)."""
    client = clients()
    columns = {name: text for name, text in COLUMNS.items() if name != "uid"}  # ALTER refuses UUID() under a binary log (1674)
    make(client, {"columns": columns, "indexes": {}, "checks": {}, "foreign_keys": {}}, "one")
    one = catalogue.shape(session, str(session.schema), "one").columns
    added = ", ".join(f"ADD COLUMN {quote('2 ' + name)} {definition} AFTER {quote(name)}" for name, definition in one.items())
    session.verbatim(f"ALTER TABLE one {added}")

    both = catalogue.shape(session, str(session.schema), "one").columns
    assert {name: both[f"2 {name}"] for name in columns} == one
    assert {name: both[name] for name in columns} == one


def test_what_changed_is_named_by_kind(session: Session, job: App) -> None:
    job.run("CREATE TABLE parent (id VARCHAR(191) COLLATE utf8mb4_unicode_ci PRIMARY KEY)")
    before = catalogue.shape(session, str(session.schema), "job")
    job.run("ALTER TABLE job MODIFY doneAt DATETIME NULL, ADD COLUMN x INT, ADD INDEX i (status), ADD CONSTRAINT c CHECK (x > 1), "
            "ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES parent (id)")
    after = catalogue.shape(session, str(session.schema), "job")

    changed = after.changed_since(before)
    assert changed == {"columns": {"doneAt", "x"}, "indexes": {"i"}, "foreign_keys": {"f"}, "checks": {"c"}}
    assert differences(after, before, changed) == [
        "column doneAt: has datetime NULL, expected datetime(3) NULL", "column x: has int NULL, expected nothing",
        "index i: has INDEX (`status`), expected nothing",
        "foreign key f: has FOREIGN KEY (`id`) REFERENCES `parent` (`id`) ON DELETE NO ACTION ON UPDATE NO ACTION, expected nothing",
        "check c: has CHECK ((`x` > 1)), expected nothing"]
    assert differences(after, before, {"columns": {"status"}}) == []
    assert unjudged(after, before, {}) == ["columns: x", "indexes: i", "foreign keys: f", "checks: c"]


def test_another_order_of_columns_is_a_difference(session: Session, job: App) -> None:
    before = catalogue.shape(session, str(session.schema), "job")
    job.run("ALTER TABLE job MODIFY doneAt DATETIME(3) NULL AFTER id")

    assert differences(catalogue.shape(session, str(session.schema), "job"), before, {}) == [
        "column order: doneAt stands where status is expected"]


def test_an_absent_table_has_an_empty_shape(session: Session) -> None:
    assert catalogue.shape(session, str(session.schema), "nothing") == Shape()
    assert not catalogue.exists(session, str(session.schema), "nothing")


def test_a_shape_survives_a_json_column_with_its_order(session: Session, job: App) -> None:
    job.run("ALTER TABLE job ADD COLUMN a INT FIRST")
    shape = catalogue.shape(session, str(session.schema), "job")

    assert Shape.from_json(shape.to_json()) == shape
    assert list(Shape.from_json(shape.to_json()).columns) == ["a", "id", "status", "note", "doneAt"]


def test_parents_and_children_are_related_and_the_table_itself_is_not(session: Session, job: App) -> None:
    job.run("CREATE TABLE parent (id INT PRIMARY KEY)")
    job.run("ALTER TABLE job ADD COLUMN p INT, ADD COLUMN s VARCHAR(191), ADD FOREIGN KEY (p) REFERENCES parent (id), "
            "ADD FOREIGN KEY (s) REFERENCES job (id)")
    job.run("CREATE TABLE child (j VARCHAR(191) COLLATE utf8mb4_unicode_ci, FOREIGN KEY (j) REFERENCES job (id))")
    schema = str(session.schema)

    assert catalogue.related_tables(session, schema, "job") == [(schema, "child"), (schema, "parent")]


def test_self_updating_columns_and_key_are_found(session: Session, clients: Any) -> None:
    client = clients()
    client.run("CREATE TABLE t (b INT, a BINARY(4), u DATETIME(3) NULL ON UPDATE CURRENT_TIMESTAMP(3), "
               "v TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP INVISIBLE, w DATETIME NULL, PRIMARY KEY (a, b))")

    assert catalogue.self_updating_columns(session, str(session.schema), "t") == ["u", "v"]
    assert catalogue.primary_key(session, str(session.schema), "t") == [("a", "binary"), ("b", "int")]
