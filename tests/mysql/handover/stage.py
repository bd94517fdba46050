"""A table with parent, child, several character sets and a counter ahead of its rows, to be copied by pt-online-schema-change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from steps import ddl
from steps.plan import Plan
from steps.rollout import Rollout
from tests.conftest import App
from tests.plans import ADD_STATE, Ddl, small

ROWS = 3000
WIDEN = Ddl("010_widen", "MODIFY COLUMN `kind` VARCHAR(64) NOT NULL", "MODIFY COLUMN `kind` VARCHAR(32) NOT NULL")
TABLES = """
CREATE TABLE owner (id VARCHAR(20) PRIMARY KEY) COLLATE utf8mb4_unicode_ci;
CREATE TABLE job (
  id BIGINT AUTO_INCREMENT PRIMARY KEY, ownerId VARCHAR(20) NOT NULL, kind VARCHAR(32) NOT NULL,
  note TEXT CHARACTER SET latin1 COMMENT 'what', status VARCHAR(32) NOT NULL DEFAULT 'pending',
  at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, KEY job_kind (kind, status), KEY job_owner (ownerId),
  CONSTRAINT job_ownerId_fkey FOREIGN KEY (ownerId) REFERENCES owner (id) ON DELETE RESTRICT ON UPDATE CASCADE
) COLLATE utf8mb4_unicode_ci COMMENT 'jobs';
CREATE TABLE result (
  id BIGINT AUTO_INCREMENT PRIMARY KEY, jobId BIGINT NULL, KEY result_job (jobId),
  CONSTRAINT result_jobId_fkey FOREIGN KEY (jobId) REFERENCES job (id) ON DELETE CASCADE ON UPDATE CASCADE
);
SET SESSION cte_max_recursion_depth = 10000;
INSERT INTO owner VALUES ('o1'), ('o2');
INSERT INTO job (ownerId, kind, note, status)
  WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
  SELECT IF(i % 2, 'o1', 'o2'), CONCAT('kind ', i), IF(i % 3, CONCAT('é', i), NULL), 'completed' FROM n;
INSERT INTO result (jobId) SELECT id FROM job WHERE id % 10 = 0;
ANALYZE TABLE job
"""
Make = Callable[[Plan], Rollout]


def handed(folder: Path, tool: str, *more: str, blocked_s: float = 0, steps: tuple[Ddl, ...] = (WIDEN, ADD_STATE)) -> Plan:
    """A plan that widens `kind` by *tool* wherever a copy would block for longer than *blocked_s*."""
    folder.mkdir(exist_ok=True)
    busy = ("handover.max_threads_running=1000", "handover.critical_threads_running=5000")  # other tests may share the server
    return small(folder, steps=steps, head=f"max_blocked_s = {blocked_s}", overrides=(f"handover.command={tool}", *busy, *more))


def climb(rollout: Rollout, to: int) -> list[ddl.Group]:
    """Bring the table from where it stands to stair *to*, up or down, as phase 1 does."""
    ladder, here = rollout.ladder(), rollout.position()
    rollout.ledger.create()
    groups = ddl.grouped(ddl.moves(ladder, here, to, ROWS), rollout, ROWS, with_sync=False)
    for group in groups:
        ddl.carry_out(rollout, group, ladder, "forward" if to > here else "back")
    return groups


def everything(app: App) -> dict[str, Any]:
    """Every table's definition and rows, and every trigger."""
    tables = [name for (name,) in app.rows("SHOW TABLES") if not name.startswith("_rollout_")]
    return {name: (app.create_table(name), app.rows(f"SELECT * FROM `{name}` ORDER BY id")) for name in tables} | {"": app.triggers()}
