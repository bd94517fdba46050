"""
`python -m deploy.base_image NAME`: a base image for deploy/Dockerfile made of this machine's Debian, for machines that can pull none.

debootstrap makes a minimal system with Python and its venv module, of the machine's own release; the engine imports it. Needs root and
an engine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from deploy.mysql_server.archive import Archive, debian_base, unpack
from deploy.mysql_server.cache import kept
from deploy.mysql_server.errors import WayClosedError

INCLUDED = ("python3", "python3-venv", "ca-certificates")
# Not needed to run anything: half of what a minimal system holds.
LEFT_OUT = ("./usr/share/doc/", "./usr/share/man/", "./usr/share/locale/", "./var/cache/apt/", "./var/lib/apt/lists/", "./dev/")
CLOSED_EXIT_CODE = 69  # EX_UNAVAILABLE


def make_base(name: str) -> str:
    """
    Import a minimal Debian with Python into the Docker engine as image *name* and return its id (two minutes the first time; cached).

    Raises:
        WayClosedError: not root, not Debian, its archive cannot be reached, or no engine answers.
    """
    import docker  # noqa: PLC0415  # an extra, and slow to import
    from docker.errors import DockerException  # noqa: PLC0415

    release = _release()
    packed = kept(f"base-{release}-1", lambda folder: _build(folder, release)) / "base.tar"
    repository, _, tag = name.partition(":")
    try:
        client = docker.from_env(timeout=600)
        client.api.import_image_from_file(str(packed), repository, tag or "latest", changes=['CMD ["/bin/sh"]'])
        return str(client.images.get(name).id)
    except DockerException as silent:
        raise _closed(f"the Docker engine did not take image {name}: {silent}", "start an engine or set DOCKER_HOST") from silent


def _build(folder: Path, release: str) -> None:
    if os.geteuid():
        raise _closed("debootstrap needs root", "call it as root, or name a base image that is there")
    uri, _signed_by = debian_base()
    system = folder / "system"
    command = [*_debootstrap(folder), "--variant=minbase", f"--include={','.join(INCLUDED)}", release, system, uri]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=_environment(folder))
    if ended.returncode:
        raise _closed(f"debootstrap failed: {ended.stdout[-600:]}", "make `apt-get update` work on this machine first")
    with tarfile.open(folder / "base.tar", "w") as tar:
        tar.add(system, ".", filter=lambda member: None if f"{member.name}/".startswith(LEFT_OUT) and member.name != "./dev" else member)
    shutil.rmtree(system)
    shutil.rmtree(folder / "apt", ignore_errors=True)
    shutil.rmtree(folder / "tool", ignore_errors=True)


def _debootstrap(folder: Path) -> list[str | Path]:
    """The command: the one on the PATH, else the archive's, which is a script."""
    found = shutil.which("debootstrap")
    if found:
        return [found]
    apt = folder / "apt"
    apt.mkdir()
    packages = [deb for deb in Archive(apt, own_release=True).fetch(["debootstrap"]) if deb.name.startswith("debootstrap_")]
    unpack(packages, folder / "tool")
    return ["sh", folder / "tool/usr/sbin/debootstrap"]


def _environment(folder: Path) -> dict[str, str]:
    ours = folder / "tool/usr/share/debootstrap"
    return {**os.environ, "LC_ALL": "C", **({"DEBOOTSTRAP_DIR": str(ours)} if ours.is_dir() else {})}


def _release() -> str:
    released = Path("/etc/os-release")
    text = released.read_text() if released.exists() else ""
    name = re.search(r"(?m)^VERSION_CODENAME=\"?([a-z]+)", text)
    if not name or not re.search(r"(?m)^ID=\"?debian", text):
        raise _closed("this is no release of Debian", "name a base image that is there")
    return name[1]


def _closed(reason: str, remedy: str) -> WayClosedError:
    return WayClosedError("docker", reason, remedy)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{sys.argv[1]} {make_base(sys.argv[1])}\n")
    except WayClosedError as why_not:
        sys.stderr.write(f"{why_not.reason}; {why_not.remedy}\n")
        sys.exit(CLOSED_EXIT_CODE)
