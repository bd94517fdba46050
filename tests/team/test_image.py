"""
The image of `deploy/Dockerfile`, on a base of this machine's Debian: built, started, healthy, and a rollout runs in it.

The base comes from debootstrap and `docker import`, packages from a folder that this machine's pip has filled: nothing is pulled. Fails,
never skips, where no engine answers.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import subprocess
import sys
import threading
import tomllib
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import docker
import pytest
from sqlalchemy import make_url

from deploy.base_image import INCLUDED, make_base
from deploy.mysql_server import provide
from deploy.mysql_server.cache import kept
from steps.target import Target
from tests.conftest import App, add_jobs, make_old_database
from tests.team.prefect_installation import POOL, Api, prefect_server, until

pytestmark = pytest.mark.docker

ROOT = Path(__file__).resolve().parents[2]
BASE, IMAGE = "rollout-base:made", "mysql-rollout:made"
USER = 10001
WHO = "/var/lib/rollout/who"
BESIDES = ("hatchling", "async-timeout")  # what the wheel is built with, and what only Python before 3.11.3 asks for


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    found = docker.from_env(timeout=600)
    found.ping()
    yield found
    found.close()


@pytest.fixture(scope="module")
def base(client: Any) -> str:
    make_base(BASE)
    return BASE


@pytest.fixture(scope="module")
def packages(client: Any, base: str) -> Iterator[str]:
    """The address on loopback of every package of the image, as this machine's pip gets them."""
    asked = ["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    version = client.containers.run(base, asked, remove=True).decode().strip()
    pinned = (ROOT / "constraints.txt").read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    entry = f"wheels-{version}-{hashlib.sha256(pinned).hexdigest()[:12]}"

    def download(folder: Path) -> None:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", version,
                               "--dest", folder, "--constraint", ROOT / "constraints.txt", *BESIDES, *requirements()],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    folder = kept(entry, download)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A folder's files, as pip looks for them."""

    def log_message(self, *_: Any) -> None:
        """Tests are quiet."""


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["kubernetes"]]


@pytest.fixture(scope="module")
def image(client: Any, base: str, packages: str) -> Any:
    """Built with pip's settings as build arguments, on the host's network for the sake of loopback."""
    try:
        made, _log = client.images.build(path=str(ROOT), dockerfile="deploy/Dockerfile", tag=IMAGE, network_mode="host", rm=True,
                                         buildargs={"BASE": base, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": packages})
    except docker.errors.BuildError as failed:
        pytest.fail(f"{failed}\n{''.join(part.get('stream', '') for part in failed.build_log)[-3000:]}", pytrace=False)
    return made


@pytest.fixture(scope="module")
def shop() -> Iterator[Target]:
    """A schema with the ADR's nine rows, on a MySQL of this machine."""
    with provide() as server:
        target = Target(make_url(server.url).set(database=f"t_{uuid.uuid4().hex[:20]}"))
        admin = App(target, "")
        admin.run(f"CREATE DATABASE `{target.schema}` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci")
        admin.close()
        app = App(target)
        make_old_database(app)
        add_jobs(app, 9)
        app.close()
        yield target


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with prefect_server(Path(sys.executable), tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def worker(client: Any, image: Any, api: Api, shop: Target, tmp_path: Path) -> Iterator[Any]:
    """The container as it starts by itself, its database's URL in a file, its deployments made from within."""
    secret = tmp_path / "database_url"
    secret.write_text(shop.url.render_as_string(hide_password=False))
    settings = {"PREFECT_API_URL": api.url, "ROLLOUT_DATABASE_URL_FILE": "/run/secrets/database_url"}
    given = {str(secret): {"bind": "/run/secrets/database_url", "mode": "ro"}}
    deployed = ("prefect work-pool create mysql-rollout --type process && "
                "prefect --no-prompt deploy --all --prefect-file /opt/rollout/share/rollout/prefect.yaml")
    client.containers.run(image.id, ["sh", "-c", deployed], environment=settings, network_mode="host", remove=True)
    health = {"test": image.attrs["Config"]["Healthcheck"]["Test"], "interval": 2 * 10**9, "timeout": 20 * 10**9, "retries": 3}
    found = client.containers.run(image.id, detach=True, environment=settings, network_mode="host", volumes=given, healthcheck=health)
    yield found
    found.remove(force=True)


def health(container: Any) -> str:
    container.reload()
    return str(container.attrs["State"]["Health"]["Status"])


def test_the_base_is_a_minimal_debian_with_python(client: Any, base: str) -> None:
    told = client.containers.run(base, ["sh", "-c", "cat /etc/os-release; dpkg-query --show"], remove=True).decode()

    assert "ID=debian" in told
    assert all(name in told for name in INCLUDED)


def test_the_image_knows_nothing_of_where_its_packages_came_from_and_is_no_roots(client: Any, image: Any, packages: str) -> None:
    told = client.containers.run(image.id, ["sh", "-c", "id -u; id -g; find /opt/rollout -user 10001 -o -name pip.conf; rollout --help"],
                                 remove=True).decode()

    assert told.splitlines()[:2] == [str(USER), str(USER)]
    assert told.splitlines()[2].strip() in ("", "Usage: rollout [OPTIONS] COMMAND [ARGS]...")  # nothing of its own is the user's to change
    assert packages not in json.dumps(client.api.history(image.id)) + json.dumps(image.attrs)
    assert image.attrs["Config"]["User"] == f"{USER}:{USER}"


def test_the_container_turns_healthy_and_a_rollout_started_over_the_api_runs_in_it(worker: Any, api: Api, shop: Target) -> None:
    until(lambda: health(worker) == "healthy", 300)
    assert "mysql-rollout" in {pool["name"] for pool in api.ask("POST", "/work_pools/filter", {})}
    started = api.start("rollout", {"plan": "ai_analysis_job", "by": "ann", "reason": "CHG-1",
                                    "settings": [f"deploy.command=id -u > {WHO}", "deploy.rollback_command=true"]})

    run = api.ended(started)

    assert (run["state_type"], run["state_name"]) == ("COMPLETED", "Completed"), run["state"]["message"]
    assert worker.exec_run(["cat", WHO]).output.decode().strip() == str(USER)
    app = App(shop)
    assert set(app.rows("SELECT state FROM _rollout_phase")) == {("done",)}
    assert len(app.triggers()) == 2
    app.close()


def test_a_worker_without_its_database_is_unhealthy_and_says_why(client: Any, image: Any, api: Api) -> None:
    settings = {"PREFECT_API_URL": api.url, "ROLLOUT_DATABASE_URL": "mysql://nobody:none@127.0.0.1:9/nowhere"}

    said = client.containers.run(image.id, ["sh", "-c", "rollout ready --json; echo $?"], environment=settings, network_mode="host",
                                 remove=True).decode()

    document, _, code = said.strip().rpartition("\n")
    trouble = json.loads(document)["trouble"]
    assert (code, trouble["prefect"]) == ("4", None)
    assert "127.0.0.1:9" in trouble["database"]


def test_the_image_starts_as_a_worker_of_the_pool_that_the_deployments_name(image: Any) -> None:
    assert f"--pool {POOL} " in " ".join(image.attrs["Config"]["Cmd"])
