"""How we are known to Prefect's API: its own setting, else the file that `PREFECT_API_AUTH_STRING_FILE` names. Needs no Prefect."""

from __future__ import annotations

import os
from pathlib import Path

from steps.errors import WrongUsage

AUTH, KEY = "PREFECT_API_AUTH_STRING", "PREFECT_API_KEY"
FILE = f"{AUTH}_FILE"


def take() -> None:
    """
    Set `PREFECT_API_AUTH_STRING` from its file where only that is given: a container's secret is a file, and what is started in one beside
    its first process inherits no more. Safe to repeat.

    Raises:
        WrongUsage: the file cannot be read.
    """
    path = os.environ.get(FILE)
    if not path or os.environ.get(AUTH):
        return
    try:
        os.environ[AUTH] = Path(path).read_text().strip()
    except (OSError, ValueError) as error:
        raise WrongUsage(FILE, f"names a file that cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}",
                         "name one that holds NAME:PASSWORD alone") from None
