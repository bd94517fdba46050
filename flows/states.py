"""What Prefect calls the way a run ended, by our exit code; Prefect-free, since the ledger's runs are called so too."""

from __future__ import annotations

STATE_NAMES = {3: "Refused", 4: "Stopped", 5: "RolledBack", 6: "Busy", 7: "RollbackFailed"}
KIND_NAMES = {"ParityLost": "ParityLost", "ParityUnseen": "ParityUnseen"}
"""The same for errors that a list of runs should tell from others of their exit code, by their kind."""
UNTOLD = "untold"
"""Outcome of the ledger's event that says that Prefect missed something of this run."""
