"""A disk of our own that is filled up and emptied again at will: a small tmpfs (case C26)."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK = 4096
TRIES = 50


class NoSmallDiskError(RuntimeError):
    """Nothing can be mounted here: the tests of a full disk cannot run, and fail."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"no small disk: {self.reason}; run as root, or in a container that may mount (CAP_SYS_ADMIN)"


class SmallDisk:
    """A mounted folder. Made by :func:`small_disk`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def fill(self, leave_kb: int = 0) -> None:
        """Take all room but *leave_kb*, also while others take some: what is left when nobody has moved for a try is nothing."""
        with self._ballast.open("ab") as ballast:
            for _ in range(TRIES):
                try:
                    size = os.fstat(ballast.fileno()).st_size
                    os.posix_fallocate(ballast.fileno(), 0, max(BLOCK, size + self.free_bytes - leave_kb * 1024))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                if self.free_bytes <= leave_kb * 1024:
                    return

    def empty(self) -> None:
        """There is room again. Safe to repeat."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """
    Mount a tmpfs of that size on *folder*, made when missing, for as long as the context lasts; it takes memory only as it is used.

    Raises:
        NoSmallDiskError: mounting is not allowed here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", folder], capture_output=True,
                             text=True, check=False)
    if mounted.returncode:
        raise NoSmallDiskError(mounted.stderr.strip())
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)
