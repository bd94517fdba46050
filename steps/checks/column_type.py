"""
A column's definition as data, from SQL or from the catalogue's text, and what a change from one to another takes away.

What counts as narrower: fewer integers, digits, characters, bytes or fractions of a second; list members removed or moved; another
type, another character set (cases C30, C68).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

INTEGERS = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
TEXTS = {"tinytext": 255, "text": 65_535, "mediumtext": 16_777_215, "longtext": 4_294_967_295}
BLOBS = {"tinyblob": 255, "blob": 65_535, "mediumblob": 16_777_215, "longblob": 4_294_967_295}
TEMPORAL = {"date": 3, "time": 3, "datetime": 5, "timestamp": 4, "year": 1}
SAME = {"integer": "int", "int4": "int", "int8": "bigint", "int2": "smallint", "dec": "decimal", "numeric": "decimal", "fixed": "decimal",
        "bool": "tinyint", "boolean": "tinyint", "real": "double", "character": "char", "nchar": "char", "nvarchar": "varchar"}
MAX_BYTES = {"utf8mb4": 4, "utf8mb3": 3, "utf8": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "ucs2": 2, "gbk": 2, "big5": 2, "sjis": 2,
             "cp932": 2, "euckr": 2, "gb2312": 2, "ujis": 3, "eucjpms": 3, "gb18030": 4}

WIDE = {"utf16", "utf16le", "utf32", "ucs2"}


@dataclass(frozen=True)
class Column:
    """*said* holds the words of the definition that stand outside parentheses, so that what was left out can be told."""

    kind: str
    arguments: tuple[str, ...] = ()
    charset: str = ""
    collation: str = ""
    said: frozenset[str] = frozenset()

    @property
    def nullable(self) -> bool:
        return "NOT NULL" not in self.said and "PRIMARY" not in self.said

    @property
    def supplied(self) -> bool:
        """Whether an INSERT that does not name the column gets a value for it (case C31)."""
        return self.nullable or bool(self.said & {"DEFAULT", "AUTO_INCREMENT", "AS"})

    @property
    def type(self) -> str:
        words = [f"{word}'" if word.startswith("'") else word for word in self.arguments]
        text = self.kind + (f"({','.join(words)})" if words else "")
        return text + (" unsigned" if self.unsigned else "")

    @property
    def unsigned(self) -> bool:
        return bool(self.said & {"UNSIGNED", "ZEROFILL"})

    @property
    def textual(self) -> bool:
        return self.kind in TEXTS or self.kind in ("char", "varchar", "enum", "set")

    @property
    def length(self) -> int:
        """The first argument as a number; a type's own default where none is given."""
        default = {"decimal": 10, "char": 1, "binary": 1, "bit": 1}.get(self.kind, 0)
        return int(self.arguments[0]) if self.arguments and self.arguments[0].isdigit() else default

    @property
    def characters(self) -> int | None:
        """How many characters (bytes, for a TEXT) a value may have; None for other types."""
        return self.length if self.kind in ("char", "varchar") else TEXTS.get(self.kind)

    @property
    def definition(self) -> str:
        """The type with what a foreign key compares."""
        return self.type + (f" COLLATE {self.collation or f'(of {self.charset})'}" if self.charset else "")

    @property
    def stored_bytes(self) -> int:
        """Bytes that count for the 65,535 of a row (case C15), measured on 9.7.4: a TEXT or BLOB counts as length and pointer only."""
        wide = MAX_BYTES.get(self.charset, 1)
        if self.kind in ("varchar", "varbinary"):
            size = self.length * (wide if self.kind == "varchar" else 1)
            return size + (1 if size < 256 else 2)  # noqa: PLR2004  # the length prefix
        if self.kind in ("char", "binary"):
            return self.length * (wide if self.kind == "char" else 1)
        return _fixed_bytes(self)


def parsed(words: list[str], table_collation: str) -> Column:
    """The definition that *words* (of :mod:`steps.checks.words`) spell; the table's collation where it names none."""
    kind = SAME.get(words[0].lower(), words[0].lower())
    at, arguments = 1, list[str]()
    if words[1:2] == ["("]:
        end = words.index(")")
        arguments, at = [word for word in words[2:end] if word != ","], end + 1
    said, named, depth = set[str](), dict[str, str](), 0
    rest = words[at:]
    for place, word in enumerate(rest):
        depth += (word == "(") - (word == ")")
        upper, following = word.upper(), rest[place + 1:place + 2]
        if depth or word == ")":
            continue
        if upper in ("COLLATE", "SET", "CHARSET") and following:
            named["collation" if upper == "COLLATE" else "charset"] = following[0].lstrip("'`").lower()
        if upper == "NULL" and rest[place - 1:place] != ["NOT"] and "DEFAULT" not in (w.upper() for w in rest[place - 1:place]):
            said.add("NULL")
        elif upper != "NULL":
            said.add("NOT NULL" if upper == "NOT" else upper)
    column = Column(kind, tuple(arguments), said=frozenset(said))
    if not column.textual:
        return column
    collation = named.get("collation", "" if "charset" in named else table_collation)
    charset = named.get("charset", collation.partition("_")[0])
    return replace(column, charset="utf8mb3" if charset == "utf8" else charset, collation=collation)


def lost(before: Column, after: Column) -> list[str]:
    """Attributes that a MODIFY or CHANGE takes away by not repeating them (case C30)."""
    names = {"DEFAULT": "its default", "COMMENT": "its comment", "AUTO_INCREMENT": "AUTO_INCREMENT", "INVISIBLE": "INVISIBLE",
             "SRID": "its SRID"}
    found = [text for word, text in names.items() if word in before.said and word not in after.said]
    if not before.nullable and after.nullable and "NULL" not in after.said:
        found.insert(0, "NOT NULL")
    if "ON" in before.said and "ON" not in after.said:
        found.append("ON UPDATE")
    if before.textual and after.textual and "COLLATE" in before.said and not after.said & {"COLLATE", "SET", "CHARSET"}:
        found.append(f"its collation {before.collation}")
    return found


def narrowed(before: Column, after: Column) -> str | None:
    """Why *after* cannot hold all that *before* holds, or None."""
    if before.textual and after.textual and before.charset and after.charset and before.charset != after.charset:
        if not _holds_all_of(before.charset, after.charset):
            return f"character set {before.charset} becomes {after.charset}"
        if after.kind in TEXTS and after.kind != "longtext" and _outgrows(before, after):
            return f"character set {before.charset} becomes {after.charset}, in which a full {before.kind} outgrows {after.kind}"
        before = replace(before, charset=after.charset)  # sizes are then compared in the same characters
    reason = _smaller(before, after)
    if reason is None and before.nullable and not after.nullable:
        return "NULL becomes NOT NULL, so old code that writes NULL gets 1048"
    return reason


def _holds_all_of(before: str, after: str) -> bool:
    """Whether every character of *before* is in *after*: ASCII is in all of them, and all of them are in utf8mb4."""
    return before == "ascii" or after == "utf8mb4"


def _outgrows(before: Column, after: Column) -> bool:
    """A TEXT is measured in bytes: whether the longest value of *before*, written in the character set of *after*, may not fit there."""
    grows = after.charset in WIDE or before.charset not in ("ascii", "utf8mb3")
    if before.kind in TEXTS:
        return grows and TEXTS[after.kind] <= TEXTS[before.kind]
    return before.length * (MAX_BYTES.get(after.charset, 1) if grows else MAX_BYTES.get(before.charset, 1)) > TEXTS[after.kind]


def _smaller(before: Column, after: Column) -> str | None:
    """By the kind of type: what there is less of, or None. Of two sizes, the one that matters for that kind is compared."""
    kind = before.kind
    if kind in INTEGERS and after.kind in INTEGERS:
        smaller, what = _integers(after)[0] > _integers(before)[0] or _integers(after)[1] < _integers(before)[1], "fewer integers"
    elif kind in ("enum", "set") and after.kind == kind:
        smaller, what = after.arguments[:len(before.arguments)] != before.arguments, "members are removed or moved"
    elif _capacity(before) and _capacity(after):
        smaller, what = _capacity(after) < _capacity(before), "fewer characters" if before.textual else "fewer bytes"
    elif kind != after.kind:
        smaller, what = (kind, after.kind) != ("float", "double"), "another type"
    elif kind == "decimal":
        fewer = any(now < then for now, then in zip(_digits(after), _digits(before), strict=True))
        smaller, what = fewer or (after.unsigned and not before.unsigned), "fewer numbers"
    elif kind == "binary":
        smaller, what = before.length != after.length, "values are padded differently"
    elif kind in ("datetime", "timestamp", "time"):
        smaller, what = after.length < before.length, "fractions of a second are lost"
    else:
        smaller, what = after.length < before.length or (after.unsigned and not before.unsigned), "fewer values"
    return f"{before.type} becomes {after.type}: {what}" if smaller else None


def _fixed_bytes(column: Column) -> int:
    members = len(column.arguments)
    match column.kind:
        case "datetime" | "timestamp" | "time":
            return TEMPORAL[column.kind] + (column.length + 1) // 2
        case "decimal":
            return sum(4 * (digits // 9) + (digits % 9 + 1) // 2 for digits in _digits(column))
        case "enum":
            return 1 if members < 256 else 2  # noqa: PLR2004  # what one byte can number
        case "set":
            return min(size for size in (1, 2, 3, 4, 8) if members <= 8 * size)
        case "bit":
            return (column.length + 7) // 8
    return {**INTEGERS, **TEMPORAL, "float": 4, "double": 8, **{name: 9 + at for group in (TEXTS, BLOBS) for at, name in enumerate(group)}
            }.get(column.kind, 12)


def _integers(column: Column) -> tuple[int, int]:
    bits = 8 * INTEGERS[column.kind]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _digits(column: Column) -> tuple[int, int]:
    scale = int(column.arguments[1]) if len(column.arguments) > 1 else 0
    return column.length - scale, scale


def _capacity(column: Column) -> int:
    """Bytes of a string of characters, or of bytes; 0 for other types."""
    if column.kind in ("char", "varchar"):
        return max(1, column.length * MAX_BYTES.get(column.charset, 1))
    if column.kind == "varbinary":
        return max(1, column.length)
    return TEXTS.get(column.kind, BLOBS.get(column.kind, 0))
