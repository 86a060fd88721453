"""What the figures are wanted to be, beside what was measured."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Target(NamedTuple):
    """A figure of the report: where it is, and the limit that it should keep to."""

    what: str
    path: str
    """Keys of the report, joined by slashes."""
    wanted: str
    """`>=` or `<=`, and the limit."""

    def row(self, report: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return wanted and measured side by side; None where it was not measured."""
        found: Any = report
        for key in self.path.split("/"):
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = found[key]
        sign, limit = self.wanted.split()
        reached = found >= float(limit) if sign == ">=" else found <= float(limit)
        return {"what": self.what, "wanted": self.wanted, "measured": found, "reached": reached}


TARGETS = (
    Target("POST /claims of the peer, 64 clients", "post_claims/clients/64/of_peer", ">= 4"),
    Target("POST /claims of the peer, 16 clients", "post_claims/clients/16/of_peer", ">= 2"),
    Target("POST /claims of the peer, 1 client", "post_claims/clients/1/of_peer", ">= 1"),
    Target("POST /claims of pgbench, 1 client", "post_claims/clients/1/of_pgbench", ">= 0.5"),
    Target(
        "CPU of an API process a claim, 64 clients, ms",
        "post_claims/clients/64/api_cpu_ms_per_claim",
        "<= 0.2",
    ),
    Target(
        "GET /claims, page of 20, of the peer, 64 clients",
        "get_claims/page_of_20/clients/64/of_peer",
        ">= 3",
    ),
    Target(
        "page of 100 among very many claims of one among 1,000, p99",
        "get_claims/page_of_100/p99_ratio",
        "<= 1.2",
    ),
    Target("memory of an API process, MB", "post_claims/peak_megabytes/api", "<= 150"),
    Target("memory of an API process in overload, MB", "overload/peak_megabytes/api", "<= 150"),
    Target("overload: goodput of the peak", "overload/goodput_ratio", ">= 0.8"),
    Target("overload: accepted requests' p99, s", "overload/accepted/p99_seconds", "<= 2"),
    Target("overload: refused requests' slowest, s", "overload/refused/max_seconds", "<= 2"),
    Target("overload: answers that are no refusal", "overload/unexpected", "<= 0"),
    Target("overload: back to normal, s", "overload/normal_after_seconds", "<= 5"),
    Target("overload: acknowledged claims lost", "overload/lost", "<= 0"),
    Target("overload: claims twice in the ledger", "overload/doubled", "<= 0"),
    Target(
        "audit verify, events/s on 2 cores", "evidence/verify/events_per_second_idle", ">= 200000"
    ),
    Target(
        "audit export, events/s on 2 cores", "evidence/export/events_per_second_idle", ">= 100000"
    ),
    Target(
        "audit verify --export, events/s on 2 cores",
        "evidence/verify_export/events_per_second_idle",
        ">= 100000",
    ),
    Target(
        "audit replay of a claim, events/s on 2 cores",
        "evidence/replay/events_per_second_idle",
        ">= 100000",
    ),
    Target(
        "audit replay, events/s on 2 cores",
        "evidence/replay_all/events_per_second_idle",
        ">= 100000",
    ),
    Target(
        "rebuild of claim_list, of COPY out and in", "evidence/rebuild/copy_ratio_idle", ">= 1.5"
    ),
    Target("the command's start, s of CPU", "evidence/start/cpu", "<= 0.5"),
    Target("soak: acknowledged claims lost", "soak/lost", "<= 0"),
    Target("soak: claims twice in the ledger", "soak/doubled", "<= 0"),
    Target("soak: documents lost", "soak/documents/lost", "<= 0"),
    Target("soak: rows that a replay does not make", "soak/diverged", "<= 0"),
    Target("soak: backends left behind", "soak/leaks/backends", "<= 0"),
)


def compared(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each target that was measured."""
    return [row for target in TARGETS if (row := target.row(report)) is not None]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows for a person."""
    lines = [("what", "wanted", "measured", "")]
    lines += [
        (row["what"], row["wanted"], f"{row['measured']:g}", "" if row["reached"] else "MISSED")
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
