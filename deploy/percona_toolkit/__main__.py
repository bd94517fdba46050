"""`python -m deploy.percona_toolkit`: prints the path of a pt-online-schema-change that runs, fetched first when there is none."""

import sys

from deploy.percona_toolkit.provider import NoToolError, provide_pt_osc

CLOSED_EXIT_CODE = 69  # EX_UNAVAILABLE


def main() -> int:
    """Print the path; exit code 69 when the tool cannot be had."""
    try:
        sys.stdout.write(f"{provide_pt_osc()}\n")
    except NoToolError as closed:
        sys.stderr.write(f"{closed}\n")
        return CLOSED_EXIT_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main())
