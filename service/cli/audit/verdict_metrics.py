"""What `audit verify` found, as a file that Prometheus's node exporter reads."""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from service.cli.audit.evidence_file import written
from service.evidence.verdict import Verdict

_BYTES_MAX: Final = 1 << 16
READABLE: Final = 0o644
"""The node exporter runs as a user of its own."""


def write_metrics(path: Path, verdicts: Iterable[Verdict], at: datetime) -> None:
    """Write a gauge for each ledger that was verified, and when; replaces the file at once.

    Of a ledger that could not be judged, what the file said of both stays: a standby that is behind
    for ever becomes an old verification, and where there was none, one of 1970. Raises
    ClickException where it cannot be written.
    """
    lines = [
        "# HELP claim_ledger_verification_failed 1 where the last `audit verify` found a fault.",
        "# TYPE claim_ledger_verification_failed gauge",
        "# HELP claim_ledger_verified_actor_faults Events of somebody who could not act.",
        "# TYPE claim_ledger_verified_actor_faults gauge",
        "# HELP claim_ledger_verified_at_seconds When `audit verify` last ended, in Unix time.",
        "# TYPE claim_ledger_verified_at_seconds gauge",
    ]
    for verdict in verdicts:
        labels = f'{{ledger="{verdict.ledger}"}}'
        judged = [
            f"claim_ledger_verification_failed{labels} {int(not verdict.ok)}",
            f"claim_ledger_verified_at_seconds{labels} {at.timestamp():.0f}",
        ]
        if verdict.ok and verdict.behind is not None:
            judged = _said(path, judged) or [f"claim_ledger_verified_at_seconds{labels} 0"]
        lines += judged
        if verdict.actor_faults is not None:
            lines.append(f"claim_ledger_verified_actor_faults{labels} {verdict.actor_faults}")
    with written(path, force=True) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
        os.fchmod(file.fileno(), READABLE)


def _said(path: Path, lines: Iterable[str]) -> list[str]:
    """Return what the file has in the place of such lines; nothing where it cannot be read."""
    names = {line.partition(" ")[0] for line in lines}
    try:
        with path.open("rb") as file:
            said = file.read(_BYTES_MAX).decode().splitlines()
    except (OSError, ValueError):
        return []
    return [line for line in said if line.partition(" ")[0] in names]
