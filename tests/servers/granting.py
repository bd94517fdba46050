"""deploy/grants.sql as a DBA runs it: names filled in, heading by heading."""

from __future__ import annotations

import re

from flows import grants_sql
from tests.conftest import App

PASSWORD = "granted secret"
USER = "granted"


def headed() -> dict[str, list[str]]:
    """The statements of the file under each heading; what stands before the first one under nothing."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in grants_sql.FILE.read_text().splitlines():
        heading = named[1] if (named := re.match(r"-- \[(\w+)\] ", line)) else heading
        found.setdefault(heading, [])
        if line and not line.startswith("--"):
            found[heading].append(line.removesuffix(";"))
    return found


class Granting:
    """What was granted so far to the account of the file, on one database and its ledger's."""

    def __init__(self, admin: App, database: str, ledger: str, *, relatives: tuple[str, ...], leaves: tuple[str, ...], table: str) -> None:
        self.admin, self.relatives, self.leaves = admin, relatives, leaves
        self.names = {"YOUR_LEDGER_DATABASE": ledger, "YOUR_DATABASE": database, "YOUR_TABLE": table, "YOUR_TOOL": USER,
                      "YOUR_HOST": "127.0.0.1", "YOUR_PASSWORD": PASSWORD}

    def give(self, heading: str, containing: str = "") -> None:
        """Run every statement under *heading* whose text has *containing* in it."""
        for statement in headed()[heading]:
            if containing in statement:
                for text in self._each(statement):
                    self.admin.run(text)

    def take_all(self) -> None:
        self.admin.run(f"DROP USER IF EXISTS '{USER}'@'127.0.0.1'")

    def _each(self, statement: str) -> list[str]:
        for mark, tables in (("YOUR_PARENT", self.relatives), ("YOUR_RELATIVE", self.relatives), ("YOUR_LEAF", self.leaves)):
            if mark in statement:
                return [self._filled(statement.replace(mark, table)) for table in tables]
        return [self._filled(statement)]

    def _filled(self, statement: str) -> str:
        for mark, name in self.names.items():
            if mark.endswith("_DATABASE") and statement.partition(" ON ")[2].startswith(f"`{mark}`.*"):
                name = name.replace("_", r"\_")
            statement = statement.replace(mark, name)
        assert "YOUR_" not in statement
        return statement
