"""What a URL's options ask for in TLS, whichever tool's words they are (MySQL's client, the driver, Prisma)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import tls
from steps.errors import WrongUsage
from steps.target import target_of

URL = "mysql://u:hunter22@h/d"


def mode_of(options: str) -> str:
    return tls.asked(target_of(f"{URL}?{options}").url.query).mode


@pytest.mark.parametrize(("options", "mode"), [
    ("", "preferred"),
    ("connection_limit=3", "preferred"),
    ("ssl_ca=/ca.pem", "verify_identity"),
    ("ssl-ca=/ca.pem", "verify_identity"),
    ("sslcert=/ca.pem", "verify_identity"),
    ("sslcert=/ca.pem&sslaccept=strict", "verify_identity"),
    ("sslaccept=strict", "verify_identity"),
    ("sslaccept=accept_invalid_certs", "required"),
    ("ssl_ca=/ca.pem&ssl_verify_identity=true", "verify_identity"),
    ("ssl_ca=/ca.pem&ssl_verify_cert=true", "verify_identity"),
    ("ssl_ca=/ca.pem&ssl_verify_cert=true&ssl_verify_identity=true", "verify_identity"),
    ("ssl_ca=/ca.pem&ssl_verify_identity=false", "verify_ca"),
    ("ssl_ca=/ca.pem&ssl_check_hostname=false", "verify_ca"),
    ("ssl_ca=/ca.pem&ssl_mode=VERIFY_CA", "verify_ca"),
    ("ssl_ca=/ca.pem&ssl-mode=verify_identity", "verify_identity"),
    ("ssl_verify_identity=1", "verify_identity"),
    ("ssl_verify_cert=yes&ssl_check_hostname=no", "verify_ca"),
    ("ssl_check_hostname=false", "required"),
    ("ssl_verify_cert=false", "required"),
    ("ssl_cert=/c.pem&ssl_key=/k.pem", "required"),
    ("ssl_mode=REQUIRED", "required"),
    ("ssl_mode=required&ssl_disabled=false", "required"),
    ("ssl_mode=PREFERRED", "preferred"),
    ("ssl_mode=DISABLED", "disabled"),
    ("ssl_disabled=true", "disabled"),
    ("ssl_disabled=true&ssl_mode=disabled", "disabled"),
])
def test_each_tools_words_are_one_of_five_modes(options: str, mode: str) -> None:
    assert mode_of(options) == mode


@pytest.mark.parametrize(("options", "reason"), [
    ("ssl_mode=verify", "has ssl_mode=verify"),
    ("sslaccept=maybe", "has sslaccept=maybe"),
    ("ssl_ca=/ca.pem&ssl_verify_identity=perhaps", "has ssl_verify_identity=perhaps"),
    ("ssl_ca=/ca.pem&ssl_mode=REQUIRED", "has ssl_ca, which ssl_mode=REQUIRED does not use"),
    ("ssl_ca=/ca.pem&sslaccept=accept_invalid_certs", "has ssl_ca, which ssl_mode=REQUIRED does not use"),
    ("ssl_ca=/ca.pem&ssl_verify_cert=false", "has ssl_ca, which ssl_mode=REQUIRED does not use"),
    ("ssl_ca=/ca.pem&ssl_disabled=true", "has ssl_ca, which ssl_mode=DISABLED does not use"),
    ("ssl_cert=/c.pem&ssl_mode=PREFERRED", "has ssl_cert, which ssl_mode=PREFERRED does not use"),
    ("ssl_key=/k.pem", "has ssl_key without ssl_cert"),
    ("ssl_mode=VERIFY_CA&ssl_verify_identity=true&ssl_ca=/ca.pem", "which contradict each other"),
    ("sslaccept=strict&ssl_mode=DISABLED", "which contradict each other"),
    ("ssl_verify_identity=true&ssl_check_hostname=false&ssl_ca=/ca.pem", "which contradict each other"),
    ("ssl_ca=/a.pem&sslcert=/b.pem", "has ssl_ca twice"),
    ("ssl_ca=/a.pem&ssl_ca=/b.pem", "has ssl_ca twice"),
    ("sslidentity=/a.p12", "has a PKCS12 identity"),
])
def test_what_cannot_be_meant_is_refused_and_the_password_not_shown(options: str, reason: str) -> None:
    with pytest.raises(WrongUsage, match=reason) as raised:
        target_of(f"{URL}?{options}")

    assert raised.value.exit_code == 2
    assert "hunter22" not in str(raised.value)


def test_what_was_asked_for_comes_back_from_the_targets_own_url() -> None:
    target = target_of(f"{URL}?sslcert=/ca.pem&ssl_check_hostname=0&ssl_cert=/c.pem&ssl-key=/k.pem&pool_timeout=3")

    assert dict(target.url.query) == {"ssl_mode": "VERIFY_CA", "ssl_ca": "/ca.pem", "ssl_cert": "/c.pem", "ssl_key": "/k.pem"}
    assert tls.asked(target.url.query) == tls.Tls("verify_ca", "/ca.pem", "/c.pem", "/k.pem")


def test_which_file_will_not_do_is_told(tmp_path: Path) -> None:
    text, none = tmp_path / "text", tmp_path / "none"
    text.write_text("no certificate at all")
    locked = tmp_path / "locked"
    locked.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n")

    assert tls.unusable(tls.Tls("verify_ca", str(none))) == f"ssl_ca {none} cannot be read (No such file or directory)"
    assert tls.unusable(tls.Tls("verify_ca", str(text))) == f"ssl_ca {text} is no PEM file"
    assert "is under a passphrase" in tls.unusable(tls.Tls("required", None, str(locked), str(locked)))
