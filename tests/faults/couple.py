"""A primary, a replica of it, and one address that leads to whichever is in charge: for failovers that lose the last transactions (C84)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps import waits
from steps.target import Target
from tests.conftest import App
from tests.faults.cutting_proxy import CuttingProxy

GTID = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--replica-net-timeout=10")
PATIENCE_S = 20
OF_TESTS = ("k_", "_rollout_")


@dataclass
class Couple:
    """*primary* is in charge, *replica* follows it; both take the same login. Made by :func:`coupled`."""

    primary: Server
    replica: Server
    proxy: CuttingProxy

    def client(self, server: Server, database: str = "") -> App:
        return App(Target(make_url(server.url)), database)

    def follow(self) -> None:
        """The replica begins anew with what the primary does from now on; both must hold the same."""
        primary, replica, url = self.client(self.primary), self.client(self.replica), make_url(self.primary.url)
        for client in (primary, replica):
            client.run("RESET BINARY LOGS AND GTIDS")
        replica.run(f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{url.host}', SOURCE_PORT={url.port}, SOURCE_USER='{url.username}', "
                    f"SOURCE_PASSWORD='{url.password}', GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1")
        replica.run("START REPLICA")
        _close(primary, replica)

    def follow_without(self, schema: str) -> None:
        """After a failover: the old primary forgets every schema of the tests, and follows the new one in all but *schema*."""
        replica = self.client(self.replica)
        replica.run("SET SESSION sql_log_bin = 0")
        for (name,) in replica.rows("SHOW DATABASES"):
            if str(name).startswith(OF_TESTS):
                replica.run(f"DROP DATABASE `{name}`")
        replica.run(f"CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (`{schema}`)")
        _close(replica)
        self.follow()

    def catch_up(self) -> None:
        """Wait until the replica has all that the primary has now."""
        primary, replica = self.client(self.primary), self.client(self.replica)
        wanted = primary.value("SELECT @@global.gtid_executed")
        _until(lambda: replica.value("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", wanted))
        _close(primary, replica)

    def stand_still(self) -> None:
        """What the primary does from now on never comes to the replica."""
        self.catch_up()
        replica = self.client(self.replica)
        replica.run("STOP REPLICA")
        _close(replica)

    def fail_over(self) -> None:
        """The primary is out of reach, its connections are dead, and the replica answers in its place; they have changed parts."""
        replica = self.client(self.replica)
        replica.run("STOP REPLICA")
        replica.run("RESET REPLICA ALL")
        _close(replica)
        self.proxy.lead_to(self.replica.url)
        self.proxy.cut_all()
        self.primary, self.replica = self.replica, self.primary


def _close(*clients: App) -> None:
    for client in clients:
        client.close()


def _until(condition: Callable[[], object]) -> None:
    deadline = waits.now_s() + PATIENCE_S
    while not condition():
        assert waits.now_s() < deadline, "the replica does not follow"
        threading.Event().wait(0.02)


@contextmanager
def coupled(options: tuple[str, ...] = (), folder: Path | None = None) -> Iterator[Couple]:
    """Two fresh servers; *folder* is where their data are."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(provide(folder=folder and folder / name, options=(*GTID, *options))) for name in ("a", "b"))
        password, client = make_url(first.url).password, App(Target(make_url(second.url)), "")
        client.run("SET SESSION sql_log_bin = 0")
        for host in ("localhost", "127.0.0.1"):
            client.run(f"ALTER USER 'root'@'{host}' IDENTIFIED BY '{password}'")
        _close(client)
        second = replace(second, url=make_url(second.url).set(password=password).render_as_string(hide_password=False))
        couple = Couple(first, second, stack.enter_context(CuttingProxy(first.url)))
        couple.follow()
        yield couple
