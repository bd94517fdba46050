"""An engineer beside a rollout: takes over what the report says, marks it with Prisma's own record, and builds a database from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.constants import CLIENT

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Through
from flows.repository import repository
from steps import plan_loader
from steps.rollout import Rollout
from steps.target import Target
from tests.conftest import BY_COMMAND, SHIPPED, App, statements

QUICK = (*BY_COMMAND, "cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0",
         "cleanup.cooling_s=0")
ACCEPTED = frozenset({"cleanup", "cleanup-unseen", "rename-in-place", "discard-added"})
RECORD = ("CREATE TABLE `_prisma_migrations` (`id` VARCHAR(36) PRIMARY KEY NOT NULL, `checksum` VARCHAR(64) NOT NULL, `finished_at` "
          "DATETIME(3), `migration_name` VARCHAR(255) NOT NULL, `logs` TEXT, `rolled_back_at` DATETIME(3), `started_at` DATETIME(3) NOT "
          "NULL DEFAULT CURRENT_TIMESTAMP(3), `applied_steps_count` INTEGER UNSIGNED NOT NULL DEFAULT 0)")
MARK = "INSERT INTO `_prisma_migrations` (id, checksum, migration_name, finished_at) VALUES (UUID(), '', %s, NOW(3))"
Rollouts = Callable[..., Rollout]
Document = dict[str, Any]


@dataclass
class Engineer:
    """*folders* are the repository's migrations, by name."""

    rollouts: Rollouts
    app: App
    settings: tuple[str, ...] = ()
    folders: dict[str, str] = field(default_factory=dict)

    def rollout(self) -> Rollout:
        return self.rollouts(plan=plan_loader.load("ai_analysis_job", (*QUICK, *self.settings)), accepted=ACCEPTED)

    def runs(self, through: Through) -> None:
        request = RunRequest(plan="ai_analysis_job", by="ann", reason="because", database="command line", through=through)
        actions.run(self.rollout(), request, PlainConductor())

    def goes_back(self, **what: object) -> None:
        request = RollbackRequest(plan="ai_analysis_job", by="ann", reason="because", database="command line", **what)  # type: ignore[arg-type]
        actions.rollback(self.rollout(), request, PlainConductor())

    def reads(self) -> Document:
        return repository(self.rollout())

    def follows(self) -> Document:
        """Create each folder that the report asks for and mark it as applied."""
        found = self.reads()
        for migration in found["migrations"]:
            if migration["ended"] and not migration["recorded"]:
                assert any(f"create {migration['file']}" in line for line in found["do"])
                assert any(f"resolve --applied {migration['name']}`" in line for line in found["do"])
                self.folders[migration["name"]] = migration["sql"]
                self.app.run(MARK, migration["name"])
        return found


@contextmanager
def built(target: Target, folders: dict[str, str], before: tuple[str, ...] = ()) -> Iterator[App]:
    """A database of its own, as Prisma builds one: the baseline, then each folder by name, all statements of one in one script."""
    schema = f"{target.schema}_dev"
    admin = App(target, "")
    admin.run(f"CREATE DATABASE `{schema}`")
    try:
        app = App(target, schema)
        for statement in (*statements((SHIPPED / "baseline.sql").read_text()), *before):
            app.run(statement)
        for name in sorted(folders):
            script(app, folders[name])
        yield app
        app.close()
    finally:
        admin.run(f"DROP DATABASE `{schema}`")
        admin.close()


def script(app: App, text: str) -> None:
    """Send a whole migration.sql at once; the first statement that fails ends it with its error."""
    theirs = app.connection
    with pymysql.connect(host=theirs.host, port=theirs.port, user=theirs.user, password=theirs.password, database=theirs.db,
                         client_flag=CLIENT.MULTI_STATEMENTS) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        while cursor.nextset():
            pass
