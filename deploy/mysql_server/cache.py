"""The private cache folder: built once, then only read, by any number of processes."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Return the cache folder, made when missing. Safe to repeat."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "mysql-rollout"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def building() -> Iterator[Path]:
    """
    Yield an empty folder on the cache's disk, to build an entry in and rename it into place; removed afterwards.

    Holds the cache's lock, waiting for another holder; the kernel frees it when its holder dies, and what that one left
    half built is removed here.
    """
    cache = cache_folder()
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix="building-", dir=cache))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def kept(name: str, build: Callable[[Path], None]) -> Path:
    """
    Return the cache entry *name*, after `build(empty_folder)` when it is not there yet.

    Safe to repeat, and by several processes at once: an entry appears whole or not at all.
    """
    entry = cache_folder() / name
    if entry.is_dir():
        return entry
    with building() as folder:
        if not entry.is_dir():
            made = folder / "entry"
            made.mkdir()
            build(made)
            made.rename(entry)
    return entry
