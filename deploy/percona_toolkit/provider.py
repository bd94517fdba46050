"""A pt-online-schema-change that runs: the one on the PATH, or Percona Toolkit's package unpacked into the cache with its own perl."""

import re
import shutil
import subprocess
from pathlib import Path

from deploy.mysql_server.archive import Archive, unpack
from deploy.mysql_server.cache import cache_folder, kept
from deploy.mysql_server.errors import WayClosedError

TOOL = "pt-online-schema-change"
OLDEST = (3, 7)  # older ones fail on MySQL 8.4 and 9
ENTRY = "percona-toolkit-1"
PACKAGES = ("percona-toolkit", "libdbd-mysql-perl", "perl")
NOT_NEEDED = ("gdb_", "libpython", "libsource-highlight", "libdebuginfod", "procps_", "fdisk_", "tzdata_", "media-types_")
KEPT_PROGRAMS = ("perl", TOOL)
# The prefix brings perl, its modules and libc, so that nothing of the machine's is used and the machine may be older.
SCRIPT = """\
#!/bin/sh
prefix=$(dirname "$(readlink -f "$0")")
PERL5LIB={modules}
MARIADB_PLUGIN_DIR=$prefix/{libraries}/libmariadb3/plugin
export PERL5LIB MARIADB_PLUGIN_DIR
exec "$prefix/{linker}" --library-path "$prefix/{libraries}" "$prefix/usr/bin/perl" "$prefix/usr/bin/{tool}" "$@"
"""


class NoToolError(RuntimeError):
    """pt-online-schema-change cannot be had on this machine; says why and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"no {TOOL}: {self.reason}; {self.remedy}"


def provide_pt_osc() -> str:
    """
    Return the path of a pt-online-schema-change of version 3.7 or newer: the PATH's, else the cache's, fetched first (64 MB, 25 s).

    Safe to repeat and by several processes at once; root rights are not needed.

    Raises:
        NoToolError: this is not Debian or Ubuntu, the archive cannot be reached, or its version is older.
    """
    found = shutil.which(TOOL)
    if found and _version(found) >= OLDEST:
        return found
    command = cache_folder() / ENTRY / TOOL
    if not command.is_file():
        try:
            kept(ENTRY, _build)
        except WayClosedError as closed:
            raise NoToolError(closed.reason, f"install Percona Toolkit 3.7 or newer and put {TOOL} on the PATH") from closed
    return str(command)


def _build(folder: Path) -> None:
    apt = folder / "apt"
    apt.mkdir()
    packages = [deb for deb in Archive(apt).fetch(PACKAGES) if not deb.name.startswith(NOT_NEEDED)]
    unpack(packages, folder)
    shutil.rmtree(apt)
    for program in (folder / "usr/bin").iterdir():
        if program.name not in KEPT_PROGRAMS:
            program.unlink()
    for documentation in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(folder / documentation, ignore_errors=True)
    script = folder / TOOL
    script.write_text(_script(folder))
    script.chmod(0o755)
    if _version(str(script)) < OLDEST:
        raise NoToolError("the archive's Percona Toolkit does not run here or is older than 3.7", f"put a newer {TOOL} on the PATH")


def _script(folder: Path) -> str:
    linker = next((path for path in folder.glob("**/ld-linux*.so.*") if path.exists() and not path.is_symlink()), None)
    libc = next(folder.glob("**/libc.so.6"), None)
    if not linker or not libc:
        raise NoToolError("the archive's packages hold no libc", f"install Percona Toolkit and put {TOOL} on the PATH")
    libraries = libc.parent.relative_to(folder)
    found = [path for base in (folder / "usr/share", libc.parent) for path in sorted(base.glob("perl*"))]
    folders = [inner for path in found for inner in (path, *sorted(path.glob("[0-9]*"))) if inner.is_dir() and not inner.is_symlink()]
    modules = ":".join(f"$prefix/{path.relative_to(folder)}" for path in folders)
    return SCRIPT.format(modules=modules, libraries=libraries, linker=linker.relative_to(folder), tool=TOOL)


def _version(command: str) -> tuple[int, int]:
    try:
        stated = subprocess.run([command, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"(\d+)\.(\d+)", stated)
    return (int(found[1]), int(found[2])) if found else (0, 0)
