"""`just bench`: figures and ratios of one run, one JSON object on stdout, progress on stderr."""

import argparse
import json
import os
import platform
import sys

from tests.bench.load import generator
from tests.bench.post_claims import Options, post_claims
from tests.bench.stack import running_stack

SECTIONS = ("post_claims",)


def main() -> None:
    """Run the sections asked for."""
    given = _arguments()
    options = Options(given.clients, given.seconds, given.rounds, given.workers)
    report: dict[str, object] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "load": {"generator": generator(), **options._asdict()},
    }
    with running_stack(given.partners) as stack:
        report["post_claims"] = post_claims(stack, options, _say)
    print(json.dumps(report, indent=2))  # noqa: T201 - the report is the answer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="medians are taken over these")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--workers", type=int, default=1, help="of the service and of the peer")
    parser.add_argument("--partners", type=int, default=200)
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - progress


if __name__ == "__main__":
    main()
