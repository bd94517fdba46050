"""A plan's files cannot make the tool read, or wait for, what is not the plan's: refused with file and line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steps import contract, plan_files, plan_loader
from steps.errors import PlanInvalid, RolloutError, WrongUsage
from tests.plans import SYNC, written

QUERY = "-- expect: no rows\nSELECT 1 WHERE FALSE\n"


def refused(folder: Path, *overrides: str) -> PlanInvalid:
    with pytest.raises(PlanInvalid) as raised:
        plan_loader.load(str(folder), overrides)
    assert raised.value.exit_code == 2
    return raised.value


def with_queries(folder: Path, pattern: str) -> Path:
    return written(folder, tail=f"{SYNC}\n[verify]\nqueries = [{pattern!r}]\n")


def line(folder: Path, text: str) -> int:
    return plan_files.line_with((folder / "plan.toml").read_text(), text)


@pytest.mark.parametrize("pattern", ["/etc/*", "../*.sql", "a/../../*.sql", "~/*.sql", "", "**x", "a\x00b", "[", "**"])
def test_a_pattern_that_reaches_outside_or_is_none_is_refused_with_its_line(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "outside.sql").write_text(QUERY)
    folder = tmp_path / "plan"
    folder.mkdir()
    written(folder, tail=f"{SYNC}\n[verify]\nqueries = [{plan_text(pattern)}]\n")

    error = refused(folder)

    if pattern == "**":
        assert (error.subject, error.reason) == (str(folder), "is no regular file")
    else:
        assert error.subject == f"{folder}/plan.toml:{line(folder, 'queries') if pattern.isprintable() else 1}"


def plan_text(text: str) -> str:
    return '"' + text.replace("\x00", "\\u0000") + '"'


@pytest.mark.parametrize("name", [".hidden.sql", "._010.sql", ".git/x.sql"])
def test_a_hidden_file_is_not_taken_for_a_query_by_a_pattern(tmp_path: Path, name: str) -> None:
    with_queries(tmp_path, "*.sql" if "/" not in name else "*/*.sql")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(QUERY)

    error = refused(tmp_path)

    assert f"matches the hidden file {name}" in error.reason
    assert error.subject == f"{tmp_path}/plan.toml:{line(tmp_path, 'queries')}"


def test_a_link_to_a_folder_outside_is_followed_by_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "q.sql").write_text(QUERY)
    (tmp_path / "plan").mkdir()
    with_queries(tmp_path / "plan", "verify/*.sql")
    (tmp_path / "plan" / "verify").symlink_to(tmp_path / "else")

    assert "lies outside the plan's folder" in refused(tmp_path / "plan").reason


def test_a_plan_that_is_itself_a_link_out_of_its_folder_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password = s3cret, and no TOML")
    (tmp_path / "plan").mkdir()
    written(tmp_path / "plan")
    plan = tmp_path / "plan" / "plan.toml"
    inside = plan.rename(tmp_path / "plan" / "of_today.toml")

    plan.symlink_to(tmp_path / "secret")
    error = refused(tmp_path / "plan")
    assert "plan.toml lies outside the plan's folder" in error.reason
    assert "s3cret" not in str(error)
    plan.unlink()
    plan.symlink_to(inside.name)  # as Kubernetes mounts one
    assert plan_loader.load(str(tmp_path / "plan")).table


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, link_to_a_device, link_to_itself])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    up = written(tmp_path) / "010_add_state.up.sql"
    up.unlink()
    make(up)

    error = refused(tmp_path)

    assert str(tmp_path) in error.subject
    assert any(said in error.reason for said in ("is no regular file", "lies outside", "missing or unreadable", "cannot be"))


def test_a_file_beyond_all_size_is_not_read(tmp_path: Path) -> None:
    written(tmp_path)
    for name in ("010_add_state.up.sql", "plan.toml"):
        with (tmp_path / name).open("r+b") as file:
            file.truncate(10**12)  # holes, no bytes

        error = refused(tmp_path)

        assert (error.subject, "has 1000000000000 bytes" in error.reason) == (str(tmp_path / name), True)


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    (written(tmp_path) / "010_add_state.up.sql").write_bytes(b"ALTER TABLE\n`job`\nADD COLUMN `\xe9` INT")

    assert refused(tmp_path).subject == f"{tmp_path}/010_add_state.up.sql:3"


@pytest.mark.parametrize("text", ["x = " + "[" * 5000, "x = " + "9" * 5000, '[plan]\nid = "a"\nx = ' + "{a=" * 3000])
def test_toml_beyond_all_measure_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.toml").write_text(text)

    assert "is not TOML" in refused(tmp_path).reason


@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000])
def test_a_setting_beyond_all_measure_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(RolloutError) as raised:
        plan_loader.load(str(written(tmp_path)), (f"max_stall_ms={value}",))

    assert raised.value.exit_code == 2


@pytest.mark.parametrize("ddl", ["../010_add_state", "/etc/passwd", "a/b", ".hidden", "a\x00b", "a\nb", "~root"])
def test_a_steps_files_have_plain_names(tmp_path: Path, ddl: str) -> None:
    text = (written(tmp_path) / "plan.toml").read_text()
    (tmp_path / "plan.toml").write_text(text.replace('ddl = "010_add_state"', f"ddl = {plan_text(ddl)}".replace("\n", "\\n")))

    error = refused(tmp_path)

    assert error.subject == f"{tmp_path}/plan.toml:{line(tmp_path, 'ddl = ')}"


@pytest.mark.parametrize("name", ["x" * 5000, "a\x00b", "", "/dev/zero", "/proc/self/mem/x"])
def test_a_plan_that_is_no_file_is_wrong_usage(name: str) -> None:
    with pytest.raises(WrongUsage):
        plan_loader.load(name)


def test_the_contract_beside_a_plan_is_read_as_carefully(tmp_path: Path) -> None:
    (tmp_path / "else.toml").write_text("[contract]\n")
    (tmp_path / "plan").mkdir()
    plan = plan_loader.load(str(written(tmp_path / "plan")))
    beside = tmp_path / "plan" / "contract.toml"

    beside.symlink_to(tmp_path / "else.toml")
    with pytest.raises(PlanInvalid, match="lies outside the plan's folder"):
        contract.load(plan)
    beside.unlink()
    beside.write_bytes(b"\xff")
    with pytest.raises(PlanInvalid, match="is not UTF-8"):
        contract.load(plan)
    beside.unlink()
    os.mkfifo(beside)
    with pytest.raises(PlanInvalid, match="is no regular file"):
        contract.load(plan)
