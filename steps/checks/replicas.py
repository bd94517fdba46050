"""The replicas that a pass is to spare: whether the plan names those there are, and each can be asked and keeps up (cases C65, C107)."""

from __future__ import annotations

from steps import replicas
from steps.checks import replication
from steps.checks.finding import Finding, Look, could_not_look, unavailable
from steps.errors import RolloutError, StatementFailed
from steps.masking import mask
from steps.mysql import Row
from steps.replicas import Address

NAME = "replicas"
RECEIVER, APPLIER, LAG_S = 10, 11, 32  # the places of Replica_IO_Running, Replica_SQL_Running and Seconds_Behind_Source, 8.0.22 to 9.7
LEAVE_OUT = "leave it out of backfill.replicas"


def run(look: Look) -> list[Finding]:
    """Connect to each replica of `backfill.replicas` and read its status, then count those that follow. Takes no lock anywhere."""
    named = replicas.named(look.plan.backfill)
    return [*(finding for address in named for finding in _one(look, address)), *_unseen(look, len(named))]


def _one(look: Look, address: Address) -> list[Finding]:
    where = address.where
    if not address.is_set:
        return [_refused(where, f"the environment variable {where} is not set", f"set it to the replica's URL, or {LEAVE_OUT}")]
    try:
        with address.connected() as replica:
            if replica.value("SELECT @@server_uuid") == look.session.value("SELECT @@server_uuid"):
                return [_refused(where, "is this server itself", f"set {where} to the replica's own address")]
            rows = replica.query("SHOW REPLICA STATUS")
    except StatementFailed as error:
        if not unavailable(error):
            return [_refused(where, f"does not answer ({mask(error.reason)})", f"look after it, or {LEAVE_OUT}")]
        return [could_not_look(NAME, f"replica {where}", error, "warn")]
    except (RolloutError, OSError) as error:
        return [_refused(where, f"cannot be asked ({mask(getattr(error, 'reason', str(error)))})", f"correct its URL, or {LEAVE_OUT}")]
    return _judged(look, where, rows[0]) if rows else [_refused(where, "follows no source", f"set {where} to a replica's address")]


def _judged(look: Look, where: str, status: Row) -> list[Finding]:
    most_s = look.plan.backfill.max_replica_lag_s
    if (status[RECEIVER], status[APPLIER]) != ("Yes", "Yes"):
        return [_refused(where, f"stands still (receiver {status[RECEIVER]}, applier {status[APPLIER]})",
                         f"start it, or {LEAVE_OUT}")]
    if float(status[LAG_S] or 0) <= most_s:
        return []
    return [Finding(NAME, "warn", f"replica {where}", f"is {status[LAG_S]} s behind, over {most_s:g} s: passes will wait until it has "
                    "caught up", "begin when it has, or raise backfill.max_replica_lag_s")]


def _refused(where: str, what: str, remedy: str) -> Finding:
    return Finding(NAME, "refuse", f"replica {where}", f"{what}: every pass would wait for it until backfill.max_pause_s is over", remedy)


def _unseen(look: Look, named: int) -> list[Finding]:
    """Replicas that follow this server and that no pass will look at: neither named, nor found with a door that our account opens."""
    following = [reader for reader in replication.readers(look.session) if reader.is_replica]
    if len(following) <= named:
        return []
    found = sum(_opens(address) for address in replicas.found(look.session, look.plan.backfill))
    if len(following) <= max(named, found):
        return []
    who = ", ".join(reader.who for reader in following[:5])
    return [Finding(NAME, "warn", f"{len(following)} replicas follow this server",
                    f"({who}), backfill.replicas names {named}, and {found} let this account in at the address that they report: a pass "
                    "does not see how far the others lag behind", "name environment variables with their URLs in backfill.replicas")]


def _opens(address: Address) -> bool:
    try:
        address.connected().close()
    except (RolloutError, OSError):
        return False
    return True
