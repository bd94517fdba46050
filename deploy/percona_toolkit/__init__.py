"""pt-online-schema-change wherever it is needed: `provide_pt_osc()` returns a command that runs."""

from deploy.percona_toolkit.provider import NoToolError, provide_pt_osc

__all__ = ["NoToolError", "provide_pt_osc"]
