"""Which database a URL means; the password shows nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import masking
from steps.errors import WrongUsage
from steps.target import ENVIRONMENT, ENVIRONMENT_FILE, target_of


def test_prismas_form_is_taken_and_its_own_options_are_left_out() -> None:
    target = target_of("mysql://app:s%40cret%2Fx@db.example:3307/shop?connection_limit=5&pool_timeout=2&ssl_ca=/ca.pem")

    assert (target.url.drivername, target.url.password, target.schema, dict(target.url.query)) == (
        "mysql+pymysql", "s@cret/x", "shop", {"ssl_mode": "VERIFY_IDENTITY", "ssl_ca": "/ca.pem"})


@pytest.mark.parametrize("scheme", ["mysql", "mysql+pymysql", "mysql+mysqldb", "mysql2"])
def test_every_mysql_scheme_ends_at_our_driver(scheme: str) -> None:
    assert target_of(f"{scheme}://u:secret@h/d").url.drivername == "mysql+pymysql"


def test_a_database_whose_name_needs_escaping_is_taken_as_prisma_takes_it() -> None:
    assert target_of("mysql://u:secret@h/my%20shop%25%C3%A9").schema == "my shop%é"


def test_the_password_shows_in_no_text_of_the_target() -> None:
    target = target_of("mysql://u:hunter22@h/d")

    assert (repr(target), str(target), target.where) == ("Target(h:3306/d)", "Target(h:3306/d)", "h:3306/d")
    assert masking.mask("hunter22") == masking.MASK


@pytest.mark.parametrize(("given", "reason"), [
    ("postgresql://u:hunter22@h/d", "is not a MySQL URL"),
    ("u:hunter22@h/d", "is not a MySQL URL"),
    ("mysql://u:hunter22@x@h/d", "has an unescaped @ in user or password"),
    ("mysql://u:hunter22@h", "names no database"),
    ("mysql://u:hunter22@h/", "names no database"),
    ("mysql://u:hunter22@/d", "names no host"),
    ("mysql://u:hunter22@h:port/d", "is malformed"),
    ("mysql://u:hunter22@h/d?local_infile=1", "has unknown options local_infile"),
])
def test_a_url_that_will_not_do_is_refused_without_its_password(given: str, reason: str) -> None:
    with pytest.raises(WrongUsage) as raised:
        target_of(given)

    error = raised.value
    assert (error.reason, error.subject, error.exit_code) == (reason, "--database-url", 2)
    assert "hunter22" not in f"{error!s} {error!r} {error.args}"
    assert error.__cause__ is None


def test_the_environment_is_asked_when_nothing_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "mysql://u:secret@h/from_environment")

    assert (target_of(None).schema, target_of("mysql://u:secret@h/given").schema) == ("from_environment", "given")


def test_a_file_that_the_environment_names_is_read_where_no_url_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("mysql://u:secret@h/from_file\n")
    monkeypatch.setenv(ENVIRONMENT_FILE, str(tmp_path / "url"))

    assert target_of(None).schema == "from_file"
    monkeypatch.setenv(ENVIRONMENT, "mysql://u:secret@h/from_environment")
    assert target_of(None).schema == "from_environment"


def test_a_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        monkeypatch.setenv(ENVIRONMENT_FILE, str(path))
        with pytest.raises(WrongUsage, match=f"names {path}, which cannot be read: {why}"):
            target_of(None)


def test_an_environment_that_will_not_do_is_named() -> None:
    with pytest.raises(WrongUsage, match="no URL was given; pass --database-url or set ROLLOUT_DATABASE_URL"):
        target_of(None)
