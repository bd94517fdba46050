"""A real MySQL server wherever one is needed: `with provide() as server: ... server.url`."""

from deploy.mysql_server.errors import NoServerError, ServerFailedError, WayClosedError
from deploy.mysql_server.provider import provide
from deploy.mysql_server.running import restart
from deploy.mysql_server.server import Server

__all__ = ["NoServerError", "Server", "ServerFailedError", "WayClosedError", "provide", "restart"]
