"""What pt-online-schema-change is told, and what of its words is passed on."""

from __future__ import annotations

import pytest
from sqlalchemy import URL

from steps import handover, handover_tool, plan_loader
from steps.target import Target, target_of

SECRET = 'p"a\\s#s'
TARGET = Target(URL.create("mysql+pymysql", "ann", SECRET, "db.example", 3307, "app", {"ssl_ca": "/ca.pem"}))


def test_the_login_is_in_a_file_that_only_we_can_read_and_in_no_argument() -> None:
    plan = plan_loader.load("ai_analysis_job", ["handover.replica=replica.example:3308", "backfill.target_ms=100"])

    with handover_tool.private_folder(TARGET) as folder:
        login = folder / "login.cnf"
        words = handover_tool.arguments(plan, TARGET, "ADD x INT", "_new", folder)
        assert (login.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
        assert login.read_text() == ('[client]\nhost="db.example"\nport="3307"\nuser="ann"\npassword="p\\"a\\\\s#s"\n')

    assert not folder.exists()
    assert SECRET not in " ".join(words)
    assert {"--check-replica-lag=h=replica.example,P=3308", "--recursion-method=none", "--chunk-time=0.1", "--max-lag=1",
            "--max-load=Threads_running=25", "--no-swap-tables",
            f"F={login},D=app,t=AiAnalysisJob,s=1;mysql_ssl_verify_server_cert=1;mysql_ssl_ca_file=/ca.pem"} <= set(words)


@pytest.mark.parametrize(("options", "part"), [
    ("", ",s=1;mysql_ssl_optional=1"), ("ssl_mode=DISABLED", ""), ("ssl_mode=REQUIRED", ",s=1"),
    ("ssl_ca=/ca.pem&ssl_mode=VERIFY_CA", ",s=1;mysql_ssl_ca_file=/ca.pem"),
    ("sslcert=/ca.pem&ssl_cert=/c.pem&ssl_key=/k.pem",
     ",s=1;mysql_ssl_client_cert=/c.pem;mysql_ssl_client_key=/k.pem;mysql_ssl_verify_server_cert=1;mysql_ssl_ca_file=/ca.pem"),
])
def test_the_tool_is_told_of_tls_what_the_url_says(options: str, part: str) -> None:
    assert handover_tool.dsn_part(target_of(f"mysql://u:secret@h/d?{options}")) == part


def test_localhost_is_an_address_to_the_tool_too() -> None:
    assert 'host="127.0.0.1"' in handover_tool.option_file(target_of("mysql://u:secret@localhost/d"))
    assert 'host="localhost"' in handover_tool.option_file(target_of("mysql://u:secret@localhost/d?socket=/run/m.sock"))
    assert handover_tool.cannot_be_told(target_of("mysql://u:secret@localhost/d?ssl_ca=/ca.pem&ssl_mode=VERIFY_CA")) is None
    assert "takes localhost for a socket" in str(handover_tool.cannot_be_told(target_of("mysql://u:secret@localhost/d?ssl_ca=/ca.pem")))


def test_a_path_that_the_tool_would_split_is_told_beforehand() -> None:
    assert "holds a comma" in str(handover_tool.cannot_be_told(target_of("mysql://u:secret@h/d?ssl_ca=/my,ca.pem")))
    assert handover_tool.cannot_be_told(target_of("mysql://u:secret@h/d?ssl_ca=/my%20ca.pem")) is None


@pytest.mark.parametrize(("line", "passed_on"), [
    ("DBD::mysql::st execute failed: Duplicate entry 'ann@x' for key 'u' [for Statement \"INSERT\" with ParamValues: 0='ann'] at line 1",
     "DBD::mysql::st execute failed: Duplicate entry  for key 'u'"),
    ("Copying `app`.`job`:  48% 00:05 remain", "Copying `app`.`job`:  48% 00:05 remain"),
])
def test_its_lines_are_passed_on_without_what_rows_hold(line: str, passed_on: str) -> None:
    assert handover_tool.PARTS_OF_ROWS.sub("", line) == passed_on


@pytest.mark.parametrize(("sql", "clauses"), [
    ("ALTER TABLE `a b` MODIFY COLUMN `x` INT", "MODIFY COLUMN `x` INT"),
    ("alter table t\n  MODIFY x VARCHAR(64) COMMENT 'it''s',\n  ENGINE=InnoDB", "MODIFY x VARCHAR(64) COMMENT 'it''s',\n  ENGINE=InnoDB"),
    ("ALTER /* why */ TABLE `t``u` ADD y INT", "ADD y INT"),
])
def test_the_tool_gets_what_follows_the_tables_name(sql: str, clauses: str) -> None:
    assert handover.clauses(sql) == clauses
