"""A MySQL server in a container, through testcontainers."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import docker
from docker.errors import DockerException, ImageNotFound
from testcontainers.community.mysql import MySqlContainer
from testcontainers.core.config import testcontainers_config

from deploy.mysql_server.errors import ServerFailedError, WayClosedError
from deploy.mysql_server.server import Server, asked_version, server_url
from deploy.mysql_server.settings import SETTINGS

IMAGE_NAME = "ROLLOUT_MYSQL_IMAGE"
DEFAULT_IMAGE = "mysql:8.4"
PULL_S = 60  # the longest silence of a pull; a registry out of reach answers, or does not, sooner
MYSQL_PORT = 3306
# The official image starts a first server on port 0 to set itself up, and MySQL X names port 33060.
READY = r"ready for connections[^\n]*port: 3306\s"


def contained(options: Sequence[str]) -> AbstractContextManager[Server]:
    """
    Return the context of a server in a container of the image ROLLOUT_MYSQL_IMAGE (`mysql:8.4`), pulled when missing.

    Published to 127.0.0.1 only. *options* are given to mysqld after our own. The container is removed with the context;
    when this process is killed, by testcontainers' Ryuk, where the engine has or can pull Ryuk's image.

    Raises:
        WayClosedError: at once, when no engine answers or the image can be neither found nor pulled.
        ServerFailedError: entering the context, when the container's server does not come up.
    """
    image = os.environ.get(IMAGE_NAME, DEFAULT_IMAGE)
    try:
        client = docker.from_env(timeout=PULL_S)
        client.ping()
    except DockerException as silent:
        raise WayClosedError(
            "docker", f"no Docker engine answers: {silent}", "start one or set DOCKER_HOST"
        ) from silent
    try:
        pulled = not _here(client, image) and _pulled(client, image)
        ryuk = testcontainers_config.ryuk_image
        # Without this, testcontainers fails where a registry is out of reach.
        if not _here(client, ryuk) and not (pulled and _pulled(client, ryuk)):
            testcontainers_config.ryuk_disabled = True
    except DockerException as refused:
        remedy = f"set {IMAGE_NAME}, or make one: python -m deploy.mysql_server --make-image NAME"
        raise WayClosedError("docker", f"image {image} cannot be pulled: {refused}", remedy) from refused
    finally:
        client.close()
    return _started(image, options)


@contextmanager
def _started(image: str, options: Sequence[str]) -> Iterator[Server]:
    password = secrets.token_hex(16)
    # `mysql` as the database to create is there already, so that none is added.
    container = MySqlContainer(
        image, username="root", password=password, dbname="mysql", wait_strategy_check_string=READY
    )
    container.ports = {f"{MYSQL_PORT}/tcp": ("127.0.0.1", None)}  # type: ignore[dict-item]  # the engine takes it
    container.with_command([*SETTINGS, f"--server-id={1 + secrets.randbelow(2**31)}", *options])
    try:
        container.start()
        url = server_url("root", password, "127.0.0.1", container.get_exposed_port(MYSQL_PORT))
        version = asked_version(url)
    except Exception as failed:
        log = _log_tail(container)
        container.stop()
        raise ServerFailedError(f"starting in a container of {image}", f"{failed}\n{log}") from failed
    try:
        yield Server(url, "docker", version, None, None)
    finally:
        container.stop()


def _log_tail(container: MySqlContainer) -> str:
    with suppress(Exception):  # there may be no container yet
        return b"\n".join(container.get_logs()).decode(errors="replace")[-2000:]
    return ""


def _here(client: docker.DockerClient, image: str) -> bool:
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    return True


def _pulled(client: docker.DockerClient, image: str) -> bool:
    client.images.pull(image)
    return True
