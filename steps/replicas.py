"""
The replicas whose lag a pass minds: those that the plan names, and those that tell the server where they listen (cases C65, C107).

A named one has its URL in an environment variable: no credentials in a plan. A found one (`report_host` is set there) is asked with the
account of the pass; whether it can be is known when the pass begins, and one that cannot is told once, since nobody named it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from steps import masking, waits
from steps.errors import RolloutError, StatementFailed
from steps.health import Reading
from steps.ledger import Ledger
from steps.mysql import VALUE, Session
from steps.plan import Backfill
from steps.target import Target, target_of

PATIENCE_S = 0.3
READ_S = 5


@dataclass(frozen=True)
class Address:
    """Where a replica is: *label* for people, its environment variable or its target, and its `server_uuid` where the server told it."""

    label: str
    where: str = ""
    target: Target | None = None
    server: str = ""

    @property
    def is_set(self) -> bool:
        """Whether there is an address at all."""
        return bool(self.target or os.environ.get(self.where))

    def connected(self) -> Session:
        """
        A session on it.

        Raises:
            StatementFailed: the environment variable is not set.
            RolloutError: its URL is malformed, or it cannot be reached.
        """
        if not self.is_set:
            raise StatementFailed(self.where, f"the environment variable {self.where} is not set")
        return Session(self.target or target_of(os.environ[self.where]), read_timeout_s=READ_S)


_silent: set[Address] = set()


def named(settings: Backfill) -> list[Address]:
    """Those of `backfill.replicas`."""
    return [Address(where, where) for where in settings.replicas]


def found(session: Session, settings: Backfill) -> list[Address]:
    """Those that follow this server and told it their host (`report_host`); none where SHOW REPLICAS is denied. Takes no lock."""
    if not settings.find_replicas:
        return []
    try:
        rows = session.query("SHOW REPLICAS")
    except StatementFailed:
        return []
    url = session.target.url
    return [Address(f"{host}:{port}", target=Target(url.set(host=str(host), port=int(port))), server=str(server))
            for _id, host, port, _source, server in rows if host]


def watched(ledger: Ledger, name: str, settings: Backfill, told: Callable[[str], None]) -> list[Replica]:
    """
    The replicas that pass *name* minds; close each when it has ended. At full speed only the named ones.

    *told* hears of each found one that cannot be asked, with the reason, once in this process. One that is so late, on purpose perhaps,
    that the ledger is not there yet is such a one too.
    """
    minded = [Replica(ledger, name, address, settings.max_replica_lag_s) for address in named(settings)]
    others = [] if settings.mode == "full_speed" else found(ledger.session, settings)
    known = {replica.server() for replica in minded} if others else set()
    for address in others:
        if address.server in known or address in _silent:
            continue
        replica = Replica(ledger, name, address, settings.max_replica_lag_s)
        if replica.server():
            minded.append(replica)
            continue
        replica.close()
        _silent.add(address)
        told(f"replica {address.label} cannot be asked ({replica.trouble}): its lag is not seen; name it in backfill.replicas, "
             "or backfill.find_replicas = false")
    return minded


class Replica:
    """How far a replica is behind, by the ledger's own heartbeat there: it tells of appliers that stand still and report nothing."""

    def __init__(self, ledger: Ledger, name: str, address: Address, limit_s: float) -> None:
        self.ledger, self.name, self.address, self.limit_s = ledger, name, address, limit_s
        self._answer: tuple[datetime | None, str] = (None, "")
        self._session: Session | None = None
        self._asked_s = waits.now_s()
        self._asking: threading.Thread | None = None

    @property
    def trouble(self) -> str:
        """Why the last question was not answered, or nothing."""
        return self._answer[1]

    def server(self) -> str | None:
        """Its `server_uuid`, or None when it cannot be asked for the ledger's heartbeat; *trouble* says why then."""
        try:
            self._beat()
            return str(self._connected().value("SELECT @@server_uuid"))
        except (RolloutError, OSError) as error:
            self._troubled(error)
            return None

    def read(self) -> Reading:
        """
        Ask, and wait a moment for the answer; one that does not come is one that is behind since it was asked last with success.

        A replica that hangs holds up nobody: neither a stop nor the heartbeat waits for it.
        """
        what = f"lag of replica {self.address.label}"
        if not (self._asking and self._asking.is_alive()):
            self._asking = threading.Thread(target=self._ask, daemon=True)
            self._asking.start()
        self._asking.join(PATIENCE_S)
        beat, trouble = self._answer
        if trouble:
            return Reading(what, None, self.limit_s, " s", trouble)
        if beat is None:  # the first heartbeat is on its way, or will never come
            return Reading(what, waits.now_s() - self._asked_s, self.limit_s, " s")
        behind = self.ledger.session.value(
            f"SELECT TIMESTAMPDIFF(MICROSECOND, {VALUE}, at) / 1e6 FROM {self.ledger.table('pace')} WHERE table_schema = {VALUE} "
            f"AND table_name = {VALUE} AND plan_id = {VALUE} AND `pass` = {VALUE}", beat, *self.ledger.key, self.name)
        return Reading(what, max(0.0, float(behind or 0)), self.limit_s, " s")

    def _ask(self) -> None:
        try:
            self._answer = (self._beat(), "")
        except (RolloutError, OSError) as error:
            self._troubled(error)

    def _troubled(self, error: Exception) -> None:
        self.close()
        self._answer = (None, masking.mask(getattr(error, "reason", str(error))))

    def _connected(self) -> Session:
        if self._session is None:
            self._session = self.address.connected()
        return self._session

    def _beat(self) -> datetime | None:
        found: datetime | None = self._connected().value(
            f"SELECT at FROM {self.ledger.table('pace')} WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE} "
            f"AND `pass` = {VALUE}", *self.ledger.key, self.name)
        return found

    def close(self) -> None:
        """Safe to repeat; the next look connects anew."""
        session, self._session = self._session, None
        if session:
            session.close()
