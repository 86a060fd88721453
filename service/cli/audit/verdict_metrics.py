"""What `audit verify` found, as a file that Prometheus's node exporter reads."""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from service.cli.audit.evidence_file import written
from service.evidence.verdict import Verdict

READABLE: Final = 0o644
"""The node exporter runs as a user of its own."""


def write_metrics(path: Path, verdicts: Iterable[Verdict], at: datetime) -> None:
    """Write a gauge for each ledger that was verified, and when; replaces the file at once.

    Raises ClickException where it cannot be written.
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
        lines.append(f"claim_ledger_verification_failed{labels} {int(not verdict.ok)}")
        if verdict.actor_faults is not None:
            lines.append(f"claim_ledger_verified_actor_faults{labels} {verdict.actor_faults}")
        lines.append(f"claim_ledger_verified_at_seconds{labels} {at.timestamp():.0f}")
    with written(path, force=True) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
        os.fchmod(file.fileno(), READABLE)
