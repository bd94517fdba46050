"""What other tools left on the table or beside it: their triggers write everything twice, their tables are copies nobody needs."""

from __future__ import annotations

from steps.checks.finding import Finding, Look
from steps.handover_names import Names
from steps.mysql import VALUE

NAME = "leftovers"
TRIGGERS = {"pt_osc_": "pt-online-schema-change", "lhmt_": "Large Hadron Migrator"}
TABLES = {"_{}_new": "pt-online-schema-change or spirit", "__{}_new": "pt-online-schema-change",
          "_{}_old": "pt-online-schema-change or spirit",
          "_{}_gho": "gh-ost", "_{}_ghc": "gh-ost", "_{}_del": "gh-ost", "_{}_chkpnt": "spirit", "lhmn_{}": "Large Hadron Migrator"}


def run(look: Look) -> list[Finding]:
    """Reads the catalogue only. Our own are removed by the next hand-over or rehearsal."""
    copy = Names(look.schema, look.table).new
    found = [Finding(
        NAME, "refuse", f"trigger {program.name}",
        f"was left by {tool}, or it is running: it writes every row once more, and the end of such a copy would undo what the plan does",
        "wait for it to end; if nothing runs, drop the trigger, then the table it writes to")
        for program in look.programs if program.own and copy not in (program.text or "")
        for prefix, tool in TRIGGERS.items() if program.name.startswith(prefix)]
    wanted = {pattern.format(look.table).lower(): tool for pattern, tool in TABLES.items()}
    rows = look.session.query(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE} AND "
                              f"LOWER(TABLE_NAME) IN ({', '.join([VALUE] * len(wanted))}) ORDER BY 1", look.schema, *wanted)
    return found + [Finding(
        NAME, "warn", f"table {name}",
        f"looks like one that {wanted[str(name).lower()]} left, or is filling now",
        "see that nothing runs, then drop it; no phase touches it")
        for (name,) in rows]
