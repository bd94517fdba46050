"""The engine: plain functions over a MySQL server. Knows nothing of Prefect, of the terminal or of any one plan."""

__version__ = "0.1.0"
