"""The product as a team installs it: from its wheel, beside a Prefect server on PostgreSQL."""

from tests.packaging.conftest import installed, wheel  # noqa: F401  # used by being here
