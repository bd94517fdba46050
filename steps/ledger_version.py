"""The ledger's own schema version, and the way from each to the next."""

from __future__ import annotations

from collections.abc import Callable

from steps import __version__
from steps.errors import Refused, StatementFailed
from steps.mysql import VALUE, Session

SCHEMA_VERSION = 2
MIGRATIONS = {1: "ALTER TABLE {plan} ADD COLUMN `ended_at` DATETIME(3) NULL"}  # what leads from each version to the next
DUPLICATE_COLUMN = 1060


def migrate(session: Session, home: str, table: Callable[[str], str]) -> None:
    """
    Bring a ledger that an older tool wrote to this version, one step after the other. Safe to repeat and to kill.

    Raises:
        Refused: a newer tool wrote it.
    """
    version = int(session.value(f"SELECT schema_version FROM {table('meta')}"))
    if version > SCHEMA_VERSION:
        raise Refused(f"ledger in {home}", f"has schema version {version}, this tool knows {SCHEMA_VERSION}",
                      "use the version of the tool that wrote it, or a newer one")
    for step in range(version, SCHEMA_VERSION):
        try:
            session.verbatim(MIGRATIONS[step].format(plan=table("plan")))
        except StatementFailed as error:
            if error.errno != DUPLICATE_COLUMN:  # killed between the change and its record
                raise
        session.run(f"UPDATE {table('meta')} SET schema_version = {VALUE}, tool_version = {VALUE}", step + 1, __version__)
