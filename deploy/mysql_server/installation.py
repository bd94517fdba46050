"""A mysqld that can be started: the one on the PATH, or MySQL's packages unpacked into the cache."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.mysql_server.archive import Archive, package_version, unpack
from deploy.mysql_server.cache import building, cache_folder, kept
from deploy.mysql_server.errors import ServerFailedError, WayClosedError

OLDEST = (8, 0)
FIXED = ("--lower-case-table-names=",)
# With skip-name-resolve a TCP client is 127.0.0.1, never localhost.
FIRST_SQL = """\
CREATE USER 'root'@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY '';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
"""


@dataclass(frozen=True)
class Installation:
    """A mysqld: the command that starts it, its version and what *way* it came by."""

    command: tuple[str, ...]
    version: str
    way: str

    def template(self, options: Sequence[str] = ()) -> Path:
        """
        Return a data folder with an empty root password, to be copied; initialised once per version (3 s).

        Those of *options* that a data folder keeps for good (`lower_case_table_names`) get a template of their own.
        """
        fixed = [option for option in options if option.startswith(FIXED)]
        name = "-".join([f"data-{self.version}", *(option.lstrip("-").replace("=", "-") for option in fixed)])
        return kept(name, lambda folder: self._initialise(folder, fixed))

    def _initialise(self, folder: Path, fixed: Sequence[str]) -> None:
        sql = folder / "first.sql"
        sql.write_text(FIRST_SQL)
        data = folder / "data"
        options = [f"--datadir={data}", f"--init-file={sql}", "--skip-log-bin", "--initialize-insecure", *fixed]
        command = [*self.command, *options]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if ended.returncode:
            raise ServerFailedError(f"initialising {data}", ended.stdout[-2000:])
        (data / "auto.cnf").unlink(missing_ok=True)  # two servers with one uuid cannot replicate


def on_path() -> Installation:
    """
    Return the mysqld on the PATH.

    Raises:
        WayClosedError: there is none, or it is older than 8.0 or not MySQL's.
    """
    mysqld = shutil.which("mysqld")
    if not mysqld:
        raise WayClosedError("path", "mysqld is not on the PATH", "install MySQL 8.0 or newer")
    command = (mysqld, "--no-defaults", *_as_root())
    shown = _stated(command)
    version = _version(shown)
    if not version or "mariadb" in shown.lower():
        raise WayClosedError("path", f"{mysqld} is {shown.strip()}", "put a mysqld of MySQL 8.0 or newer first")
    return Installation(command, version, "path")


def unpacked() -> Installation:
    """
    Return the mysqld of `unpacked_prefix()`.

    Raises:
        WayClosedError: as there.
    """
    prefix = unpacked_prefix()
    return Installation(prefix_command(prefix), prefix.name.removeprefix("mysql-"), "private")


def unpacked_prefix() -> Path:
    """
    Return the cache's newest folder of unpacked MySQL packages, fetched first when there is none (65 MB, 15 s).

    Safe to repeat and by several processes at once; root rights are not needed.

    Raises:
        WayClosedError: this is not Debian or Ubuntu, or the archive cannot be reached or has no MySQL.
    """
    found = _newest()
    if not found:
        with building() as folder:
            found = _newest() or _fetched(folder)
    return found


def prefix_command(prefix: Path) -> tuple[str, ...]:
    """Return the command that starts the mysqld of *prefix* with the prefix's own libraries and message files."""
    mysqld = prefix / "usr/sbin/mysqld"
    share = prefix / "usr/share/mysql"
    return (
        *loader(prefix),
        str(mysqld),
        "--no-defaults",
        *_as_root(),
        f"--basedir={prefix / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={prefix / 'usr/lib/mysql/plugin'}",
    )


def loader(prefix: Path) -> tuple[str, str, str]:
    """Return the start of a command that runs a program of *prefix* with the prefix's own libc, not the machine's."""
    libc = next(prefix.glob("usr/lib/*/libc.so.6"), None) or next(prefix.glob("lib/*/libc.so.6"), None)
    linker = next((path for path in prefix.glob("**/ld-linux*.so.*") if path.exists()), None)
    if not libc or not linker:
        raise WayClosedError("private", f"{prefix} holds no libc", "remove this folder and try again")
    return str(linker), "--library-path", f"{libc.parent}:{prefix / 'usr/lib'}"


def _newest() -> Path | None:
    found = [path for path in cache_folder().glob("mysql-*") if (path / "usr/sbin/mysqld").is_file()]
    return max(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)], default=None)


def _fetched(folder: Path) -> Path:
    archive = Archive(folder / "apt")
    server = _newest_name(archive.names("mysql-server-core"))
    debs = archive.fetch([server, server.replace("server", "client")])
    version = package_version(next(deb for deb in debs if deb.name.startswith(f"{server}_")))
    prefix = folder / "prefix"
    unpack(debs, prefix)
    if not _version(_stated(prefix_command(prefix))):
        remedy = "set ROLLOUT_TEST_DATABASE_URL, or install MySQL 8.0 or newer"
        raise WayClosedError("private", f"the archive's {server} {version} does not run here", remedy)
    return prefix.rename(cache_folder() / f"mysql-{version.replace(':', '_')}")


def _newest_name(names: Sequence[str]) -> str:
    """Return the package to take: `mysql-server-core`, or the highest `mysql-server-core-8.0`."""
    fitting = [name for name in names if re.fullmatch(r"mysql-server-core(-[\d.]+)?", name)]
    if not fitting:
        remedy = "set ROLLOUT_TEST_DATABASE_URL, or install MySQL 8.0 or newer"
        raise WayClosedError("private", "the machine's archive has no mysql-server-core", remedy)
    return min(fitting, key=lambda name: [-int(part) for part in re.findall(r"\d+", name)])


def _as_root() -> tuple[str, ...]:
    return ("--user=root",) if os.geteuid() == 0 else ()  # mysqld refuses to run as root unasked


def _stated(command: Sequence[str]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout


def _version(stated: str) -> str:
    """Return the version in what `mysqld --version` *stated*, or nothing when it is older than 8.0."""
    found = re.search(r"Ver ((\d+)\.(\d+)\S*)", stated)
    return found[1] if found and (int(found[2]), int(found[3])) >= OLDEST else ""
