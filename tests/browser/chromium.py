"""A Chromium that runs: the one on the PATH, as Debian packages it. Playwright's own downloads are not used."""

from __future__ import annotations

import shutil

PACKAGE = "chromium"
REMEDY = "install Debian's package (apt-get install -y chromium) and put it on the PATH"


class NoChromiumError(RuntimeError):
    """There is no Chromium on this machine: the tests of Prefect's pages cannot run, and fail."""

    def __str__(self) -> str:
        return f"no {PACKAGE} on the PATH; {REMEDY}"


def provide_chromium() -> str:
    """
    Return the path of Chromium. Safe to repeat.

    Raises:
        NoChromiumError: it is not on the PATH.
    """
    found = shutil.which(PACKAGE)
    if not found:
        raise NoChromiumError
    return found
