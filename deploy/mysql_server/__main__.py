"""`python -m deploy.mysql_server`: a MySQL server to play with, until standard input ends or Ctrl-C."""

import argparse
import signal
import sys
from pathlib import Path

from deploy.mysql_server.errors import NoServerError, ServerFailedError, WayClosedError
from deploy.mysql_server.installation import unpacked
from deploy.mysql_server.provider import WAYS, provide

CLOSED_EXIT_CODE = 69  # EX_UNAVAILABLE


def main() -> int:
    """Run the command line; exit code 69 when no server can be had."""
    asked = _arguments().parse_args()
    try:
        if asked.prepare:
            installation = unpacked()
            sys.stdout.write(f"MySQL {installation.version} is in {installation.template().parent}\n")
        elif asked.make_image:
            from deploy.mysql_server.image import make_image  # noqa: PLC0415  # docker is an extra, and slow to import

            sys.stdout.write(f"{asked.make_image} {make_image(asked.make_image)}\n")
        else:
            _serve(asked.way, asked.folder, asked.option)
    except (WayClosedError, NoServerError, ServerFailedError) as closed:
        sys.stderr.write(f"{closed}\n")
        return CLOSED_EXIT_CODE
    return 0


def _serve(way: str | None, folder: Path | None, options: list[str]) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end the server the same way
    try:
        with provide(way, folder=folder, options=options) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            sys.stdin.read()
    except KeyboardInterrupt:
        return


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.mysql_server", description=__doc__)
    parser.add_argument("--way", choices=WAYS, help="take this way only")
    parser.add_argument("--folder", type=Path, help="keep the data here, and use again what is here")
    parser.add_argument(
        "--option", action="append", default=[], help="a mysqld option, such as --option=--max-connections=500"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--prepare", action="store_true", help="only fetch MySQL's packages into the cache")
    only.add_argument("--make-image", metavar="NAME", help="make a Docker image of the cache's MySQL")
    return parser


if __name__ == "__main__":
    sys.exit(main())
