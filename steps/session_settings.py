"""
The settings that every session of ours pins, whatever the server's globals are (cases C02, C08, C49, C67, C77, C99).

Each may be set by any account, is set in one statement and read back. What a global could do to us otherwise is said beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SQL_MODE = ("ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
            "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION")
A_DAY_S = 86_400
NO_LIMIT = 2**64 - 1


@dataclass(frozen=True)
class Waits:
    """
    How long a session's statements may wait for metadata locks and row locks: whole seconds, MySQL's own backstop.

    *silence_s* is for how long the server keeps the session, and all that it holds, when it hears nothing of us.
    """

    lock_wait_timeout_s: int = 2
    innodb_lock_wait_timeout_s: int = 2
    silence_s: int = A_DAY_S


def wanted(waits: Waits) -> dict[str, Any]:
    """Variable by variable, what a session of ours must have. Names are the server's, values as the server reads them back."""
    return {
        "lock_wait_timeout": waits.lock_wait_timeout_s,  # a year, else
        "innodb_lock_wait_timeout": waits.innodb_lock_wait_timeout_s,
        "sql_mode": SQL_MODE,  # triggers keep their creator's for good
        "time_zone": "+00:00",
        "transaction_isolation": "READ-COMMITTED",
        "autocommit": 1,  # 0 leaves a transaction, and with it a metadata lock, open after every look
        "completion_type": "NO_CHAIN",  # CHAIN opens a transaction at every COMMIT
        "information_schema_stats_expiry": 0,
        "character_set_client": "utf8mb4",
        "collation_connection": "utf8mb4_0900_ai_ci",
        "sql_safe_updates": 0,
        "foreign_key_checks": 1,
        "unique_checks": 1,
        "sql_auto_is_null": 0,  # 1 makes `IS NULL` find the row inserted last
        "sql_select_limit": NO_LIMIT,  # a smaller one cuts every look at many rows, silently
        "sql_big_selects": 1,
        "max_execution_time": 0,  # a global one ends long reads with 3024
        "wait_timeout": waits.silence_s,  # a day where nothing is held: the ledger is idle while a long statement runs elsewhere
        "default_storage_engine": "InnoDB",  # what a rehearsal makes must have foreign keys
        "sql_quote_show_create": 1,
        "show_gipk_in_create_table_and_information_schema": 1,  # a generated invisible key is a key (case C87)
    }
