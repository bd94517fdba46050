"""A real PostgreSQL wherever Prefect's server is to stand on one: `with provide() as url: ...`."""

from deploy.postgres_server.installation import NoPostgresError
from deploy.postgres_server.running import provide

__all__ = ["NoPostgresError", "provide"]
