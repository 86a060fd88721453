"""`just bench`: the figures and ratios of one run, as one JSON object; progress on stderr."""

import argparse
import json
import os
import platform
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from service.core import logs
from tests.bench.application import application
from tests.bench.dev_start import dev_start
from tests.bench.documents import documents
from tests.bench.evidence import evidence
from tests.bench.get_claims import Options as ListOptions
from tests.bench.get_claims import get_claims
from tests.bench.load import generator
from tests.bench.overload import overload
from tests.bench.pages import pages
from tests.bench.post_claims import Options, post_claims
from tests.bench.rebuild import rebuild
from tests.bench.round_trips import round_trips
from tests.bench.soak import Options as SoakOptions
from tests.bench.soak import soak
from tests.bench.stack import RATE_LIMIT, Stack, running_stack
from tests.bench.targets import compared, table
from tests.bench.under_load import under_load

APART = ("application", "documents", "dev_start", "soak")
"""Sections that start an installation of their own, or need none."""
SECTIONS = (
    "post_claims",
    "get_claims",
    "round_trips",
    "under_load",
    "overload",
    "rebuild",
    "evidence",
    "pages",
    *APART,
)


def main() -> None:
    """Run the sections that were asked for."""
    given = _arguments()
    logs.configure("error", sys.stderr.buffer)  # of the parts that run in this process
    sections = given.sections or [name for name in SECTIONS if name != "soak"]
    report: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "load": {
            "generator": generator(),
            "partners": given.partners,
            "rate_limit_per_minute": RATE_LIMIT,
        },
    }
    if not set(APART).issuperset(sections):
        with running_stack(given.partners) as stack:
            report |= {name: _run(name, stack, given) for name in sections if name not in APART}
    if "application" in sections:
        report["application"] = application(given.clients, given.rounds, _say)
    if "documents" in sections:
        report["documents"] = documents(_say)
    if "dev_start" in sections:
        report["dev_start"] = dev_start(_say)
    if "soak" in sections:
        options = SoakOptions(given.minutes, given.seed, given.history, given.directory)
        report["soak"] = soak(options, _say)
    report["targets"] = compared(report)
    _say(table(report["targets"]))
    print(json.dumps(report, indent=2))  # noqa: T201 - the report is the answer


def _run(name: str, stack: Stack, given: argparse.Namespace) -> dict[str, Any]:
    seconds, rounds, workers = given.seconds, given.rounds, given.workers
    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "post_claims": lambda: post_claims(
            stack, Options(given.clients, seconds, rounds, workers, given.peer), _say
        ),
        "get_claims": lambda: get_claims(
            stack, ListOptions(given.claims, given.clients, seconds, rounds, given.peer), _say
        ),
        "round_trips": lambda: round_trips(stack, _say),
        "under_load": lambda: under_load(stack, seconds, workers, _say),
        "overload": lambda: overload(stack, given.overload_seconds, workers, _say),
        "rebuild": lambda: rebuild(stack, given.events, rounds, _say),
        "evidence": lambda: evidence(stack, given.evidence_events, rounds, _say),
        "pages": lambda: pages(stack, given.claims, given.requests, _say),
    }
    return runs[name]()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="section",
        help=f"default: all of {', '.join(SECTIONS)}; soak only when named",
    )
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians over these")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--workers", type=int, default=1, help="of the service and of the peer")
    parser.add_argument(
        "--peer",
        choices=["tuned", "plain"],
        default="tuned",
        help="tuned: a faster parser, a pool of 16; plain: as it comes",
    )
    parser.add_argument(
        "--claims",
        type=int,
        default=1_000_000,
        help="of get_claims, pages: 10000000 takes 5 GB of disk",
    )
    parser.add_argument("--requests", type=int, default=10_000_000, help="noted, of pages")
    parser.add_argument(
        "--events",
        type=int,
        nargs="+",
        default=[100_000, 1_000_000],
        help="of rebuild: sizes of the log, such as 10000000",
    )
    parser.add_argument("--evidence-events", type=int, default=200_000, help="of evidence")
    parser.add_argument("--overload-seconds", type=int, default=60, help="of overload's load")
    parser.add_argument("--minutes", type=float, default=60, help="of soak")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(10**6), help="of soak; default: a random one"
    )
    parser.add_argument("--history", type=Path, help="file for soak's requests and answers")
    parser.add_argument(
        "--directory", type=Path, help="of soak, kept with its logs; default: a temporary one"
    )
    parser.add_argument("--partners", type=int, default=200, help="that send the load")
    given = parser.parse_args()
    unknown = set(given.sections).difference(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    return given


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - progress


if __name__ == "__main__":
    main()
