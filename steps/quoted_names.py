"""Names inside the definitions of :class:`steps.catalogue.Shape`, whatever they are made of: commas, brackets and backticks too."""

from __future__ import annotations

import re

from steps.mysql import quote

LINE = re.compile(r"(?:`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|[^\n`'])+", re.DOTALL)


def lines(create_sql: str) -> list[str]:
    """The lines of a SHOW CREATE TABLE, one clause each; a name with a line break in it does not end one."""
    return LINE.findall(create_sql)


def has_name(text: str, name: str) -> bool:
    """Whether *text* has *name* in backticks, and not as a part of a longer name; names of columns have no case."""
    return re.search(rf"(?<!`){re.escape(quote(name))}(?!`)", text, re.IGNORECASE) is not None


def parts(definition: str) -> list[str]:
    """What stands between the outermost parentheses of an index's *definition*, split at the commas outside names, strings and brackets."""
    found, depth, inside, begin = list[str](), 0, "", definition.index("(") + 1
    end = definition.rindex(")")
    for at in range(begin, end):
        letter = definition[at]
        if inside:
            inside = "" if letter == inside else inside  # a doubled mark closes and opens again
        elif letter in "`'":
            inside = letter
        elif letter == "," and depth == 0:
            found.append(definition[begin:at].strip())
            begin = at + 1
        else:
            depth += (letter == "(") - (letter == ")")
    return [*found, definition[begin:end].strip()]


def column_of(part: str) -> str | None:
    """The column that *part* of an index stands on, or None for an expression."""
    if not part.startswith("`"):
        return None
    return part[1:part.rindex("`")].replace("``", "`")
