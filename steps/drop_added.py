"""What `--drop-added` would destroy, looked at before anything is undone (cases C68, C96)."""

from __future__ import annotations

import re

from steps.errors import Refused
from steps.ladder import Ladder
from steps.mysql import byte_literal, quote
from steps.rollout import Rollout

LOOK_LIMIT_MS = 60_000
LENGTH = re.compile(r"^varchar\((\d+)\)")


def refuse_losses(rollout: Rollout, ladder: Ladder, position: int) -> None:
    """
    Raises:
        Refused: a column that goes back to a shorter length holds longer values; or added columns hold what nobody else
            does and `discard-added` is not accepted. Both with a count.
    """
    if not position:
        return
    now, then = ladder.shape_at(position).columns, ladder.baseline.columns
    for column in then:
        was, is_now = LENGTH.match(then[column]), LENGTH.match(now.get(column, ""))
        if was and is_now and int(is_now[1]) > int(was[1]):
            longer = rollout.session.value(f"SELECT /*+ MAX_EXECUTION_TIME({LOOK_LIMIT_MS}) */ COUNT(*) FROM {quote(rollout.table)} "
                                           f"WHERE CHAR_LENGTH({quote(column)}) > {int(was[1])}")
            if longer:
                raise Refused(f"column {rollout.table}.{column}", f"holds {longer} values longer than {was[1]} characters",
                              "shorten them first, or go back without --drop-added: the old application can live with the wider column")
    lost = _rows_with_more(rollout, [column for column in now if column not in then])
    if lost and "discard-added" not in rollout.accepted:
        raise Refused(f"table {rollout.table}", f"{lost} rows hold values in added columns that the old columns do not have",
                      "go back without --drop-added to keep them, or acknowledge the loss with --accept discard-added")


def _rows_with_more(rollout: Rollout, added: list[str]) -> int:
    """Rows where an added column holds more than its default, or the new side of a map a value that the old side cannot say."""
    elsewhere = set(rollout.plan.filled_columns) | {rename.new for rename in rollout.plan.renames}
    conditions = [f"NOT ({quote(column)} <=> DEFAULT({quote(column)}))" for column in added if column not in elsewhere]
    for value_map in rollout.plan.sync:
        if value_map.new in added:
            said = ", ".join(byte_literal(value) for value in dict.fromkeys(value_map.to_new.values()))
            conditions.append(f"CAST(CONVERT({quote(value_map.new)} USING utf8mb4) AS BINARY) NOT IN ({said})")
    if not conditions:
        return 0
    return int(rollout.session.value(f"SELECT /*+ MAX_EXECUTION_TIME({LOOK_LIMIT_MS}) */ COUNT(*) FROM {quote(rollout.table)} "
                                     f"WHERE {' OR '.join(conditions)}") or 0)
