"""A Docker image made from the cache's MySQL, for machines that can pull none; it stands in for `mysql:8.4`."""

import io
import tarfile
from pathlib import Path

import docker
from docker.errors import DockerException

from deploy.mysql_server.archive import Archive, unpack
from deploy.mysql_server.cache import building
from deploy.mysql_server.errors import WayClosedError
from deploy.mysql_server.installation import unpacked_prefix

MYSQL_ID = 999  # as in the official image
# Not read by mysqld: half of what the packages hold.
LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/perl", "usr/lib/mysql/plugin/debug")
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "usr/bin/sh": "dash"}
FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/bin/sh\nmysql:x:{MYSQL_ID}:{MYSQL_ID}::/var/lib/mysql:/bin/sh\n",
    "etc/group": f"root:x:0:\nmysql:x:{MYSQL_ID}:\n",
}
FOLDERS = {"tmp": 0o1777, "run": 0o755, "var": 0o755, "var/lib": 0o755, "var/lib/mysql": 0o750, "proc": 0o755}
CHANGES = (
    'ENTRYPOINT ["/usr/bin/entrypoint"]',
    'CMD ["mysqld"]',
    "EXPOSE 3306",
    "VOLUME /var/lib/mysql",
    "ENV PATH=/usr/sbin:/usr/bin",
)
ENTRYPOINT = Path(__file__).with_name("entrypoint.sh")


def make_image(name: str) -> str:
    """
    Import the cache's MySQL into the Docker engine as image *name* and return the image's id. Safe to repeat.

    It honours MYSQL_ROOT_PASSWORD and MYSQL_DATABASE and takes mysqld options, as the official image does.

    Raises:
        WayClosedError: no engine answers, or MySQL's packages cannot be had.
    """
    repository, _, tag = name.partition(":")
    mysql = unpacked_prefix()
    with building() as folder:
        packed = folder / "image.tar"
        _pack(packed, [mysql, _shell(folder)])
        try:
            client = docker.from_env(timeout=600)
            client.api.import_image_from_file(str(packed), repository, tag or "latest", changes=list(CHANGES))
            return str(client.images.get(name).id)
        except DockerException as silent:
            reason = f"the Docker engine did not take image {name}: {silent}"
            raise WayClosedError("docker", reason, "start an engine or set DOCKER_HOST") from silent


def _shell(folder: Path) -> Path:
    """Return a prefix with the shell the entrypoint needs: mysqld's packages depend on none."""
    prefix = folder / "shell"
    unpack(Archive(folder / "apt").fetch(["dash"]), prefix)
    return prefix


def _pack(packed: Path, prefixes: list[Path]) -> None:
    """Write *prefixes*, the first winning, and what a system needs besides, to the tar file *packed*."""
    with tarfile.open(packed, "w") as tar:
        seen: set[str] = set()
        for prefix in prefixes:
            for path in sorted(prefix.rglob("*")):
                name = str(path.relative_to(prefix))
                if name not in seen and not name.startswith(LEFT_OUT):
                    seen.add(name)
                    tar.add(path, name, recursive=False, filter=_owned_by_root)
        for name, target in LINKS.items():
            if name not in seen:
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, target
                tar.addfile(link)
        for name, mode in FOLDERS.items():
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, mode
            made.uid = made.gid = MYSQL_ID if name == "var/lib/mysql" else 0
            tar.addfile(made)
        for name, text in {**FILES, "usr/bin/entrypoint": ENTRYPOINT.read_text()}.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(text.encode()), 0o755 if name.startswith("usr/bin") else 0o644
            tar.addfile(file, io.BytesIO(text.encode()))


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
