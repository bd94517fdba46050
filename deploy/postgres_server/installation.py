"""A PostgreSQL that can be started: the one that is installed, or Debian's packages unpacked into the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from deploy.mysql_server.archive import Archive, unpack
from deploy.mysql_server.cache import kept
from deploy.mysql_server.errors import WayClosedError

OLDEST = 14  # what Prefect's server takes
ENTRY = "postgres-1"
INSTALLED = Path("/usr/lib/postgresql")  # where Debian's packages are, off the PATH
# The packages run with the machine's own libc, and without what only documentation, JIT and Perl functions need.
LEFT_OUT = ("libc6_", "libc-bin_", "libllvm", "libperl", "libcrypt1_", "libgcc-s1_", "libstdc++6_")
REMEDY = "install PostgreSQL 14 or newer"


class NoPostgresError(RuntimeError):
    """No PostgreSQL can be had or started on this machine; says why and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"no PostgreSQL: {self.reason}; {self.remedy}"


@dataclass(frozen=True)
class Installation:
    """A folder *programs* with `initdb` and `postgres`; *libraries* that they need beside the machine's; *prefix* of unpacked packages."""

    programs: Path
    libraries: Path | None = None
    prefix: Path | None = None


def found(*, private: bool = False) -> Installation:
    """
    What is installed; else, or with *private*, the cache's, fetched first when there is none (about 40 MB, 20 s). Safe to repeat.

    Raises:
        NoPostgresError: nothing is installed, and this is not Debian or Ubuntu, or its archive cannot be reached.
    """
    if not private:
        for programs in _installed():
            if _version(programs) >= OLDEST:
                return Installation(programs)
    try:
        prefix = kept(ENTRY, _build)
    except WayClosedError as closed:
        raise NoPostgresError(closed.reason, f"{closed.remedy}, or {REMEDY}") from closed
    return within(prefix)


def within(prefix: Path) -> Installation:
    """The installation of packages unpacked into *prefix*, wherever that has been moved."""
    programs = next(prefix.glob("usr/lib/postgresql/*/bin"))
    return Installation(programs, next(prefix.glob("usr/lib/*/libpq.so.5")).parent, prefix)


def _installed() -> list[Path]:
    on_path = shutil.which("postgres")
    folders = sorted(INSTALLED.glob("*/bin"), key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0, reverse=True)
    return ([Path(on_path).resolve().parent] if on_path else []) + folders


def _version(programs: Path) -> int:
    if not (programs / "initdb").is_file():
        return 0
    stated = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"PostgreSQL\) (\d+)", stated)
    return int(number[1]) if number else 0


def _build(folder: Path) -> None:
    apt = folder / "apt"
    apt.mkdir()
    archive = Archive(apt, own_release=True)
    servers = [name for name in archive.names("postgresql-") if re.fullmatch(r"postgresql-\d+", name)]
    if not servers:
        raise NoPostgresError("the machine's archive has no PostgreSQL", REMEDY)
    server = max(servers, key=lambda name: int(name.rpartition("-")[2]))
    wanted = (f"{server}_", f"{server.replace('-', '-client-')}_", "lib")
    packages = [deb for deb in archive.fetch([server]) if deb.name.startswith(wanted) and not deb.name.startswith(LEFT_OUT)]
    unpack(packages, folder)
    shutil.rmtree(apt)
    for documentation in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(folder / documentation, ignore_errors=True)
