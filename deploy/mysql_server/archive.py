"""Packages from the machine's own package archive, fetched by apt without touching the machine's apt."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.mysql_server.errors import WayClosedError

NEEDED = ("apt-get", "apt-cache", "dpkg-deb")
DEBIAN_SUITE = "sid"  # Debian's releases carry MariaDB; only its unstable suite carries MySQL
DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

APT_CONFIG = """\
Dir::State "{folder}/state";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Cache::archives "{folder}/archives";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Debug::NoLocking "true";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
"""


class Archive:
    """
    The machine's archive, read through an apt whose lists, state and downloads all live in *folder*.

    The status file is empty, so every dependency is fetched, libc included. Needs no root rights. With *own_release* packages are those of
    the machine's release, which run with its own libraries; without it Debian's are of `sid`.

    Raises:
        WayClosedError: apt or its configuration is missing, or apt failed.
    """

    def __init__(self, folder: Path, *, own_release: bool = False) -> None:
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise WayClosedError("private", f"{missing[0]} is missing", "this way is for Debian and Ubuntu only")
        self._config = folder / "apt.conf"
        for name in ("state", "lists/partial", "cache", "archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        self._archives = folder / "archives"
        self._config.write_text(APT_CONFIG.format(folder=folder) + ("" if own_release else _sources(folder)))
        self._apt("apt-get", "update")

    def names(self, prefix: str) -> list[str]:
        """Return the names of the archive's packages that begin with *prefix*."""
        return self._apt("apt-cache", "pkgnames", prefix).split()

    def fetch(self, packages: Sequence[str]) -> list[Path]:
        """Download *packages* and all they depend on; return the files. Safe to repeat."""
        self._apt("apt-get", "--yes", "--download-only", "install", *packages)
        return sorted(self._archives.glob("*.deb"))

    def _apt(self, program: str, *arguments: str) -> str:
        command = [program, f"--config-file={self._config}", "--quiet", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        if ended.returncode:
            reason = f"{program} {' '.join(arguments)} failed: {ended.stderr.strip()[-600:]}"
            raise WayClosedError("private", reason, "make `apt-get update` work on this machine first")
        return ended.stdout


def unpack(packages: Sequence[Path], prefix: Path) -> None:
    """Unpack *packages* into *prefix*, running none of their scripts. Safe to repeat."""

    def extract(package: Path) -> None:
        subprocess.run(["dpkg-deb", "--extract", package, prefix], check=True, capture_output=True)

    with ThreadPoolExecutor() as pool:
        list(pool.map(extract, packages))


def package_version(package: Path) -> str:
    """Return the version a downloaded package states."""
    shown = subprocess.run(["dpkg-deb", "--field", package, "Version"], check=True, capture_output=True, text=True)
    return shown.stdout.strip()


def _sources(folder: Path) -> str:
    """Return the apt configuration that names the sources: Debian's sid on Debian, else the machine's own sources."""
    if _system() != "debian":
        return ""
    uri, signed_by = debian_base()
    listed = folder / "sources.list"
    listed.write_text(f"deb {signed_by}{uri} {DEBIAN_SUITE} main\n")
    return f'Dir::Etc::sourcelist "{listed}";\nDir::Etc::sourceparts "/dev/null";\n'


def _system() -> str:
    released = Path("/etc/os-release")
    found = re.search(r"(?m)^ID=\"?([a-z]+)", released.read_text()) if released.exists() else None
    return found[1] if found else ""


def debian_base() -> tuple[str, str]:
    """Return the address of the archive that serves this machine's release, and its `[signed-by=...]` option."""
    fields = "$(REPO_URI)|$(RELEASE)|$(SOURCESENTRY)"
    command = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages", "Component: main"]
    targets = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    for target in targets:
        uri, release, entry = target.split("|")
        if "-" not in release:  # not -updates, -backports; and -security is another archive, without sid
            return uri, _signed_by(entry)
    remedy = "name an archive in /etc/apt/sources.list.d"
    raise WayClosedError("private", "apt's configuration names no Debian archive with a main component", remedy)


def _signed_by(entry: str) -> str:
    """Return the `[signed-by=...]` of a source *entry* (`file:line`), or nothing, for apt's own trusted keys."""
    source = Path(entry.rpartition(":")[0])
    found = re.search(r"(?i)signed-by\s*[:=]\s*(/[^\s\]]+)", source.read_text()) if source.is_file() else None
    keyring = found[1] if found else DEBIAN_KEYRING
    return f"[signed-by={keyring}] " if Path(keyring).is_file() else ""
