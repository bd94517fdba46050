"""Live application traffic as Prisma clients make it, and the judge who says whether anything was lost or wrong."""

from flows.demo.traffic.fleet import Fleet, FleetBrokenError
from flows.demo.traffic.judge import WrongRow, final_check
from flows.demo.traffic.report import Counts, Report, read_report
from flows.demo.traffic.seed import seed, split_statements

__all__ = [
    "Counts",
    "Fleet",
    "FleetBrokenError",
    "Report",
    "WrongRow",
    "final_check",
    "read_report",
    "seed",
    "split_statements",
]
