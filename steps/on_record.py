"""An event that only we know of, such as how a command ended: it must come into the ledger though our sessions are lost by then."""

from __future__ import annotations

from steps.another_session import PATIENT, over_another
from steps.errors import ConnectionLost
from steps.ledger import Event, Ledger
from steps.mysql import Session


def put(ledger: Ledger, event: Event, age_s: float = 0) -> None:
    """
    Append *event*, over a new session if the ledger's is lost; a server that restarts is waited for. Perhaps twice, never not at all.

    Raises:
        ConnectionLost: the run is at its end, for its lock is lost as well; says whether the event is on record.
    """
    try:
        ledger.record(event, age_s)
    except ConnectionLost as lost:
        def again(session: Session) -> bool:
            ledger.record(event, age_s, session)
            return True

        written = over_another(ledger.session.target, again, tries=PATIENT)
        raise ConnectionLost(event.step, f"has come to its end ({event.outcome}), and this run's connections were lost meanwhile; "
                             f"{'that is on record' if written else 'that could not be written down'}",
                             "run the same command again: it looks at what stands and goes on from there", lost.errno) from None
