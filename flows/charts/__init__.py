"""
The pictures of a rollout: its timeline, the pace of a pass, parity over time. Made of the ledger's events alone; Prefect-free.

Drawn here and not by a library: those that know no script either (pygal asks for one, matplotlib for numpy) have no timeline and say
nothing to a reader who does not see; and of a drawing library we would use five lines.
"""
