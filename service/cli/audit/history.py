"""`claim-ledger audit history` and `claim-ledger audit trace`."""

from collections.abc import Iterable
from typing import Final

import click

from projections.activity.reader import TimelineEntry
from service.cli.options import ledger_option
from service.cli.output import Blocks
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings
from service.core.errors import Refusal
from service.evidence.replay.footing import footing
from service.evidence.replay.history import SECRET
from service.evidence.replay.history import history as read_history
from service.evidence.replay.log_fault import LogFault
from service.facts.caller import LEDGERS

LIMIT: Final = 1000
LIMIT_MAX: Final = 100_000

_limit = click.option(
    "--limit",
    type=click.IntRange(1, LIMIT_MAX),
    default=LIMIT,
    show_default=True,
    help="At most this many events, the newest.",
)


@team_command
@click.argument("subject_id", metavar="ID")
@ledger_option
@_limit
async def history(target: Target, subject_id: str, ledger: str | None, limit: int) -> Fields:
    """Show the history of a claim, entity, link, onboarding, partner, key or document.

    Events are found by an index, the read model `activity`, and read from the log: what the index
    lost is not shown. `projections verify` compares it with the log.

    Personal fields are named, not shown: `sealed`, or `erased` once their key is destroyed; `key
    missing` if it is gone and no erasure says so (`keys-at-rest verify` lists those). An event
    without a position has committed and is not numbered yet. Hashes of secrets are left out.
    """
    return await _timeline(target, subject_id, [ledger] if ledger else LEDGERS, limit)


@team_command
@click.argument("request_id")
@_limit
async def trace(target: Target, request_id: str, limit: int) -> Fields:
    """Show what one request caused, over all ledgers, in order; as `audit history` does."""
    return await _timeline(target, request_id, LEDGERS, limit)


async def _timeline(target: Target, subject: str, names: Iterable[str], limit: int) -> Fields:
    ledgers = [ledger for ledger in target.service.ledgers if ledger.name in names]
    found = await read_history(ledgers, subject, limit)
    if not found.entries:
        raise Refusal("not_found", f"No event of {', '.join(names)} names {subject}.")
    keys, rests, faults = target.service.settings.checkpoint_keys or (), [], list[Fields]()
    for ledger in ledgers:
        mine = [one for one in found.entries if one.ledger == ledger.name]
        used = {one.position: one.leaf for one in mine if one.position is not None}
        try:
            rests.append({"ledger": ledger.name, **(await footing(ledger, keys, used)).shown()})
        except LogFault as error:
            faults.append({"ledger": ledger.name, "position": error.position, "fault": str(error)})
    answer: Fields = {
        "id": subject,
        "is_cut": found.is_cut,
        "rests_on": rests,
        **({"faults": faults} if faults else {}),
        "events": Blocks(_row(entry) for entry in found.entries),
    }
    return Findings(answer) if faults else answer


def _row(entry: TimelineEntry) -> Fields:
    """Return one event; a damaged one says so instead of showing its fields."""
    meta = entry.meta
    data = {name: value for name, value in (entry.data or {}).items() if name not in SECRET}
    return {
        "ledger": entry.ledger,
        "position": entry.position,
        "at": meta.at if meta else None,
        "topic": entry.topic,
        "actor": meta.actor if meta else None,
        "request_id": meta.request_id if meta else None,
        "personal": entry.personal,
        "data": data if meta else "unreadable: the stored event is damaged",
    }
