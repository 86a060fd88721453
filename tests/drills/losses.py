"""Losing the primary under load, once, and what is left: a row of the drill's table."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.drills.cluster import PatroniCluster
from tests.drills.installation import CLIENTS, Installation
from tests.drills.machines import Machine
from tests.patience import eventually
from tests.soak.accounts import claims
from tests.soak.traffic import Customer

KINDS = ("killed", "frozen", "cut off")
WRITES = 2 * CLIENTS
"""Accepted before a loss, after it, and after the machine is back."""


class Loss(NamedTuple):
    """What one loss cost, and what must be 0 or empty after it."""

    kind: str
    was: str
    """The primary that was lost."""
    now: str
    led_seconds: float
    """From the loss until another node says that it is the primary."""
    seconds: float
    """From the loss to the first request that was sent after it and accepted."""
    whole_seconds: float
    """From the machine's return until all three replicate again."""
    answered_503: int
    acknowledged: int
    lost: int
    doubled: int
    faults: list[str]

    @property
    def is_clean(self) -> bool:
        """Whether all that was promised holds."""
        return not (self.lost or self.doubled or self.faults)


class Evidence(NamedTuple):
    """What an auditor kept from before a loss."""

    receipt: Path
    checkpoint: Path


async def lose_primary(
    cluster: PatroniCluster,
    installation: Installation,
    served: list[Customer],
    kind: str,
    number: int,
) -> Loss:
    """Lose the primary under load, bring its machine back, and verify everything afterwards."""
    history = installation.history
    before = refused(installation)
    async with installation.load(served, number):
        await accepted(installation, time.monotonic())
        evidence = await asyncio.to_thread(evidence_of, installation, number)
        was = await asyncio.to_thread(cluster.primary)
        assert was is not None
        lose, restore = ways(was, kind, lambda: cluster.start_node(was))
        await asyncio.to_thread(lose)
        lost_at = time.monotonic()
        await cluster.until_another_leads(was)
        led_at = time.monotonic()
        await accepted(installation, lost_at)
        await asyncio.to_thread(restore)
        back_at = time.monotonic()
        await eventually(lambda: asyncio.to_thread(cluster.is_whole), cluster.logs, look=0.2)
        whole_at = time.monotonic()
        await accepted(installation, whole_at)
    found = await asyncio.to_thread(claims, installation.url, history)
    faults = history.faults() + await asyncio.to_thread(findings, installation, evidence)
    now = await asyncio.to_thread(cluster.primary)
    first = min(at for at in installation.accepted(lost_at))
    return Loss(
        kind,
        was.name,
        now.name if now else "nobody",
        round(led_at - lost_at, 1),
        round(first - lost_at, 1),
        round(whole_at - back_at, 1),
        refused(installation) - before,
        found["acknowledged"],
        found["lost"],
        found["doubled"],
        faults,
    )


def table(losses: list[Loss]) -> str:
    """Return the rows of a drill as text."""
    rows = [Loss._fields, *((*map(str, one[:-1]), str(len(one.faults))) for one in losses)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in rows
    )


class Ways(NamedTuple):
    """How a machine is lost, and how it comes back."""

    lose: Callable[[], None]
    restore: Callable[[], None]


def ways(machine: Machine, kind: str, start: Callable[[], None]) -> Ways:
    """Return the ways of a kind; `start` turns a machine on, with what runs on it."""
    match kind:
        case "killed":
            return Ways(machine.die, start)
        case "frozen":
            return Ways(machine.freeze, machine.thaw)
        case _:
            return Ways(machine.cut_off, machine.plug_in)


async def accepted(installation: Installation, since: float) -> None:
    """Wait until some writes that were sent after a moment have been accepted."""
    await eventually(
        lambda: len(installation.accepted(since)) >= WRITES,
        lambda: f"{len(installation.accepted(since))} writes accepted",
        look=0.1,
    )


def refused(installation: Installation) -> int:
    """Return how many requests were answered 503 so far."""
    return sum(one["status"] == 503 for one in installation.history.operations)


def evidence_of(installation: Installation, number: int) -> Evidence:
    """Keep a receipt of a claim that was acknowledged, and a checkpoint that covers it."""
    claim_id = next(
        one["claim_id"]
        for one in reversed(installation.history.operations)
        if one["op"] == "create_claim" and one["status"] == 201
    )
    receipt = installation.home / f"receipt-{number}.json"
    code, answer = installation.command("audit", "checkpoint")
    assert code == 0, answer
    code, answer = installation.command("audit", "prove", claim_id, "--out", receipt)
    assert code == 0, answer
    notes = (installation.home / "published" / "checkpoints").rglob("*.txt")
    live = [path for path in notes if "live" in path.parts]
    newest = max(live, key=lambda path: path.stat().st_mtime)
    return Evidence(receipt, newest)


def findings(installation: Installation, evidence: Evidence) -> list[str]:
    """Return which of the commands that verify did not end with 0, and what they said."""
    key = ("--public-key", installation.public_key)
    commands: list[tuple[str | Path, ...]] = [
        ("audit", "checkpoint"),
        ("audit", "verify"),
        ("audit", "verify", "--ledger", "live", *key, "--checkpoint", evidence.checkpoint),
        ("projections", "verify"),
        *(
            ("audit", "check", receipt, *key)
            for receipt in {evidence.receipt, installation.home / "receipt-0.json"}
        ),
    ]
    done = [(words, *installation.command(*words)) for words in commands]
    return [f"{words[:2]}: {answer}" for words, code, answer in done if code != 0]
