"""From a name, a folder or a file to a plan, with file and line in every complaint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steps import plan_loader
from steps.errors import PlanInvalid, WrongUsage
from steps.plan import Plan
from tests.plans import ADD_STATE, SYNC, Ddl, written


def load(folder: Path, *overrides: str) -> Plan:
    return plan_loader.load(str(folder), overrides)


def line_of(file: Path, text: str) -> int:
    return next(i for i, line in enumerate(file.read_text().splitlines(), 1) if text in line)


def test_a_shipped_plan_is_found_by_name_and_a_users_by_folder_or_file(tmp_path: Path) -> None:
    folder = written(tmp_path)

    assert plan_loader.load("ai_analysis_job").table == "AiAnalysisJob"
    assert load(folder) == load(folder / "plan.toml").model_copy(update={"given": str(folder)})
    assert load(folder).sql_text == {"010_add_state.up.sql": f"ALTER TABLE `job` {ADD_STATE.up}",
                                     "010_add_state.down.sql": "ALTER TABLE `job` DROP COLUMN `state`"}


def test_an_unknown_name_is_wrong_usage_and_the_shipped_ones_are_named() -> None:
    with pytest.raises(WrongUsage) as raised:
        plan_loader.load("no_such_plan")

    assert (raised.value.subject, raised.value.remedy) == ("PLAN no_such_plan", "shipped plans: ai_analysis_job")


@pytest.mark.parametrize(("tail", "text", "reason"), [
    (SYNC + '\n[verify]\non_fial = "stop"\n', "on_fial", "unknown key"),
    (SYNC + "\n[deploy]\n# why\ndeadline_s = 0\n", "deadline_s", "greater than or equal to 1"),
    (SYNC + '\n[depoly]\nhow = "manual"\n', "[depoly]", "unknown key"),
    (SYNC.replace("keep_old", "keep_odl"), "keep_odl", "unknown key"),
    (SYNC + '\n[shadow_write]\nenable_command = "true"\n', "[shadow_write]", "go together: what is switched on must be switched off"),
    (SYNC + '\n[shadow_write]\ndisable_command = "true"\n', "[shadow_write]", "go together"),
    (SYNC + '\n[shadow_write]\nenable_command = ""\ndisable_command = "true"\n', "enable_command", "at least 1 character"),
    (SYNC + "\n[sql_text]\nx = 1\n", "[sql_text]", "unknown key"),
    (SYNC + SYNC.replace('"state"', '"other"').replace("running = ", "runing = ").replace('"status"', '"b"'), "runing", "running"),
])
def test_a_complaint_names_file_and_line(tmp_path: Path, tail: str, text: str, reason: str) -> None:
    file = written(tmp_path, tail=tail) / "plan.toml"

    with pytest.raises(PlanInvalid, match=reason) as raised:
        load(tmp_path)

    path, _, line = raised.value.subject.rpartition(":")
    wanted = line_of(file, text)
    # A finding about a whole [[sync]] is given the line on which that table begins.
    begins = max(i for i, row in enumerate(file.read_text().splitlines()[:wanted], 1) if row.startswith("["))
    assert path == str(file)
    assert int(line) in (wanted, begins)
    assert int(line) == wanted or "running" in reason


def test_a_shadow_write_of_the_application_needs_a_pair(tmp_path: Path) -> None:
    written(tmp_path, tail='[shadow_write]\nenable_command = "on"\ndisable_command = "off"\n')

    with pytest.raises(PlanInvalid, match="needs a pair"):
        load(tmp_path)


def test_a_shadow_write_of_the_application_is_no_part_of_the_plans_identity(tmp_path: Path) -> None:
    plain = load(written(tmp_path))
    switched = plan_loader.load(str(tmp_path), ("shadow_write.enable_command=true", "shadow_write.disable_command=false"))

    assert (switched.shadow_write.enable_command, switched.shadow_write.disable_command) == ("true", "false")
    assert switched.identity_hash() == plain.identity_hash()


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    written(tmp_path, head="max_stall_ms = 1\ntypo = 2", tail=SYNC + "\n[backfill]\ntarget_ms = 0\n")

    with pytest.raises(PlanInvalid) as raised:
        load(tmp_path)

    assert [name in raised.value.reason for name in ("max_stall_ms", "typo", "target_ms")] == [True] * 3


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (written(tmp_path) / "010_add_state.down.sql").unlink()

    with pytest.raises(PlanInvalid, match=r"step 010_add_state needs the file 010_add_state\.down\.sql, which is missing"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["[plan", "a = 1\na = 2", "\x00"])
def test_what_is_not_toml_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.toml").write_text(text)

    with pytest.raises(PlanInvalid, match="is not TOML") as raised:
        load(tmp_path)

    assert raised.value.subject == str(tmp_path / "plan.toml")


def test_what_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (written(tmp_path) / "plan.toml").write_bytes(b"\xff\xfe[plan]")

    with pytest.raises(PlanInvalid, match="is not UTF-8"):
        load(tmp_path)


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    for file in [*written(tmp_path).iterdir()]:
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))

    assert load(tmp_path).sql_text["010_add_state.down.sql"] == "ALTER TABLE `job` DROP COLUMN `state`"


@pytest.mark.parametrize("pattern", ["/etc/*.sql", "../*.sql", "a/../../x.sql"])
def test_queries_stay_inside_the_folder(tmp_path: Path, pattern: str) -> None:
    written(tmp_path, tail=f'{SYNC}\n[verify]\nqueries = ["{pattern}"]\n')

    with pytest.raises(PlanInvalid, match="reaches outside the plan's folder"):
        load(tmp_path)


def test_a_link_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside.sql"
    outside.write_text("ALTER TABLE `job` DROP COLUMN `state`")
    (tmp_path / "plan").mkdir()
    down = written(tmp_path / "plan") / "010_add_state.down.sql"
    down.unlink()
    down.symlink_to(outside)

    with pytest.raises(PlanInvalid, match="lies outside the plan's folder"):
        load(tmp_path / "plan")


def test_queries_that_match_nothing_are_refused(tmp_path: Path) -> None:
    written(tmp_path, tail=f'{SYNC}\n[verify]\nqueries = ["verify/*.sql"]\n')

    with pytest.raises(PlanInvalid, match="matches no file"):
        load(tmp_path)


def test_a_steps_sql_is_checked_with_file_and_line(tmp_path: Path) -> None:
    written(tmp_path, steps=[Ddl("010_x", "ADD COLUMN state INT,\nALGORITHM=INSTANT", "DROP COLUMN state")], tail="")

    with pytest.raises(PlanInvalid, match="names ALGORITHM") as raised:
        load(tmp_path)

    assert raised.value.subject == f"{tmp_path / '010_x.up.sql'}:2"


@pytest.mark.parametrize(("override", "got"), [
    ("max_stall_ms=500", lambda plan: plan.plan.max_stall_ms == 500),
    ("plan.max_stall_ms = 500", lambda plan: plan.plan.max_stall_ms == 500),
    ("title=two words", lambda plan: plan.plan.title == "two words"),
    ('title="quoted"', lambda plan: plan.plan.title == "quoted"),
    ("backfill.target_ms=50", lambda plan: plan.backfill.target_ms == 50),
    ("deploy.command=make deploy v=1", lambda plan: (plan.deploy.how, plan.deploy.command) == ("command", "make deploy v=1")),
    ("deploy.command=true", lambda plan: (plan.deploy.how, plan.deploy.command) == ("command", "true")),
    ("verify.queries=[]", lambda plan: plan.verify.queries == ()),
    ("rehearsal_schema=mine", lambda plan: plan.plan.rehearsal_schema == "mine"),
    ("rehearsal.sample_rows=0", lambda plan: plan.rehearsal.sample_rows == 0),
])
def test_an_override_sets_one_value(tmp_path: Path, override: str, got: Callable[[Plan], bool]) -> None:
    written(tmp_path, tail=f'{SYNC}\n[verify]\nqueries = ["q.sql"]\n' if "queries" in override else SYNC)
    (tmp_path / "q.sql").write_text("-- expect: no rows\nSELECT 1")

    assert got(load(tmp_path, override))


@pytest.mark.parametrize(("override", "kind", "reason"), [
    ("max_stall_ms", WrongUsage, "is not KEY=VALUE"),
    ("=5", WrongUsage, "is not KEY=VALUE"),
    ("max_stall_ms=soon", WrongUsage, "valid integer"),
    ("plan.max_stall_ms=1", WrongUsage, "greater than or equal to 100"),
    ("typo=1", WrongUsage, "unknown key"),
    ("rehearsal.sample_rows=-1", WrongUsage, "greater than or equal to 0"),
    ("rehearsal.sample_rows=10001", WrongUsage, "less than or equal to 10000"),
    ("deploy.typo=1", WrongUsage, "unknown key"),
    ("sync.old=x", WrongUsage, "is a list or a value"),
    ("pre_deploy.step.ddl=x", WrongUsage, "is a list or a value"),
    ("plan.id.x=1", WrongUsage, "is a list or a value"),
    ("folder.x=1", PlanInvalid, "unknown key"),
])
def test_an_override_that_will_not_do_is_refused(tmp_path: Path, override: str, kind: type[Exception], reason: str) -> None:
    written(tmp_path)

    with pytest.raises(kind, match=reason):
        load(tmp_path, override)


def test_every_shipped_plan_loads() -> None:
    assert [plan_loader.load(name).id for name in plan_loader.shipped_plans()] == plan_loader.shipped_plans()
