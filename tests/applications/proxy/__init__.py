"""HAProxy in front of several instances: `with running(folder) as proxy: proxy.add(...)`."""

from tests.applications.proxy.haproxy import Instance, Proxy, ProxyFailedError, running
from tests.applications.proxy.provider import NoProxyError, provide_haproxy

__all__ = ["Instance", "NoProxyError", "Proxy", "ProxyFailedError", "provide_haproxy", "running"]
