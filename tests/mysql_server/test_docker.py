"""The Docker way; fails, never skips, where no engine answers."""

import os

import docker
import pytest
import sqlalchemy

from deploy.mysql_server import ServerFailedError, WayClosedError, installation, provide, restart
from deploy.mysql_server.image import make_image

pytestmark = pytest.mark.docker

MADE = "rollout-mysql:made"


@pytest.fixture(scope="session")
def image() -> str:
    """The image named outside, such as `mysql:8.4`, else one made from this machine's MySQL packages."""
    named = os.environ.get("ROLLOUT_MYSQL_IMAGE")
    if not named:
        make_image(MADE)
    return named or MADE


@pytest.fixture(autouse=True)
def nothing_else_named(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLOUT_MYSQL_IMAGE", image)
    for name in ("ROLLOUT_TEST_DATABASE_URL", "ROLLOUT_MYSQL_WAY"):
        monkeypatch.delenv(name, raising=False)


def mysql_containers() -> list[str]:
    with_client = docker.from_env()
    try:
        ours = os.environ["ROLLOUT_MYSQL_IMAGE"]
        return [each.id for each in with_client.containers.list(all=True, filters={"ancestor": ours})]
    finally:
        with_client.close()


def test_a_container_serves_as_root_on_loopback_only_and_is_removed() -> None:
    before = mysql_containers()
    with provide("docker", options=["--max-connections=42"]) as server:
        engine = sqlalchemy.create_engine(server.url, poolclass=sqlalchemy.NullPool)
        with engine.connect() as connection:
            row = connection.exec_driver_sql("SELECT VERSION(), @@log_bin, @@max_connections, @@port").one()
        assert tuple(row) == (server.version, 1, 42, 3306)
        assert (server.way, server.folder, server.pid) == ("docker", None, None)
        (ours,) = set(mysql_containers()) - set(before)
        client = docker.from_env()
        published = client.containers.get(ours).ports["3306/tcp"]
        client.close()
        assert {each["HostIp"] for each in published} == {"127.0.0.1"}
        with pytest.raises(LookupError, match="not ours to restart"):
            restart(server)
    assert mysql_containers() == before


def test_docker_is_the_first_open_way() -> None:
    with provide() as server:
        assert server.way == "docker"


def test_an_image_out_of_reach_closes_the_way_chosen_and_is_passed_over_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROLLOUT_MYSQL_IMAGE", "127.0.0.1:1/no-such-image:none")
    with pytest.raises(WayClosedError, match=r"no-such-image:none cannot be pulled.*--make-image"), provide("docker"):
        pass
    with provide() as server:
        assert server.way in {"path", "private"}


def test_a_container_that_does_not_come_up_says_why_and_is_removed() -> None:
    before = mysql_containers()
    with pytest.raises(ServerFailedError, match="no-such-option"), provide("docker", options=["--no-such-option=1"]):
        pass
    assert mysql_containers() == before


def test_the_made_image_is_this_machines_mysql(image: str) -> None:
    if image != MADE:
        make_image(MADE)
    client = docker.from_env()
    told = client.containers.run(MADE, entrypoint=["/usr/sbin/mysqld", "--version"], remove=True)
    client.close()
    assert installation.unpacked().version in told.decode()
