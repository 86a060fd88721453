"""`claim-ledger keys-at-rest`: the master keys that wrap all others."""

from typing import TYPE_CHECKING, Any

import click

from service.cli.progress import progress
from service.cli.target import Findings, Target, team_command

if TYPE_CHECKING:
    from service.app.bootstrap import Service
    from service.privacy.rotation import RotationOutcome


@click.group(name="keys-at-rest")
def keys_at_rest() -> None:
    """Keys that are stored: those that seal personal data, and the service's own secrets."""


@keys_at_rest.command()
@team_command
async def rotate(target: Target) -> dict[str, Any]:
    """Wrap all keys anew under the newest master key, while the service runs.

    First add the new key behind the old in every process's ring, then put it first in all of them.
    Ends with 1 where a key does not open, or where a process still adds keys under an older one.
    """
    return await rotate_all(target.service)


@keys_at_rest.command()
@team_command
async def verify(target: Target) -> dict[str, Any]:
    """Tell which data keys are gone although no erasure says so: what they sealed is lost.

    Ends with 1 where there are any. An erasure leaves a `PersonalDataErased` in the log.
    """
    return await verify_all(target.service)


async def verify_all(service: "Service") -> dict[str, Any]:
    """Look through every ledger; Findings where keys are lost."""
    from service.privacy.lost_keys import LostKeys

    events, lost = 0, []
    for ledger in service.ledgers:
        keys = LostKeys(ledger)
        with progress(f"looking through {ledger.name}", await keys.size()) as advance:
            found = await keys.find(advance)
        events += found.events
        lost += [
            {"ledger": ledger.name} | one._asdict() | {"data_key": str(one.data_key)}
            for one in found.keys
        ]
    answer: dict[str, Any] = {"events_lost": events, "lost_keys": lost}
    return Findings(answer) if events else answer


async def rotate_all(service: "Service") -> dict[str, Any]:
    """Wrap every ledger's keys anew; Findings where some are left."""
    from service.privacy.rotation import DATA_KEYS, SERVICE_KEYS, SESSIONS, SIGN_IN_LINKS, Rotation

    ring = service.accounts.master_keys
    tables = [(ledger.database, DATA_KEYS) for ledger in service.ledgers]
    accounts = service.accounts.database
    tables += [(accounts, kept) for kept in (SERVICE_KEYS, SESSIONS, SIGN_IN_LINKS)]
    outcomes: list[tuple[str, str, RotationOutcome]] = []
    for database, kept in tables:
        rotation = Rotation(database, kept, ring)
        with progress(f"{database.schema} {kept.name}", await rotation.older()) as advance:
            outcomes.append((database.schema, kept.name, await rotation.run(advance)))
    return _answer(outcomes, ring.ids)


def _answer(
    outcomes: "list[tuple[str, str, RotationOutcome]]", ring: tuple[str, ...]
) -> dict[str, Any]:
    newest, *older = ring
    in_use = {one for _, _, outcome in outcomes for one in outcome.wrapped}
    missing = sorted({one for _, _, outcome in outcomes for one in outcome.unopened})
    keys = [
        {
            "ledger": ledger,
            "keys": table,
            "rewrapped": outcome.rewrapped,
            "newest": outcome.wrapped[newest],
            "older": outcome.wrapped.total() - outcome.wrapped[newest],
            "unopened": outcome.unopened.total(),
        }
        for ledger, table, outcome in outcomes
    ]
    answer = {
        "newest": newest,
        "unused": [one for one in older if one not in in_use],
        "still_used": [one for one in older if one in in_use],
        "not_opened_by_ring": missing,
        "before_removing": _advice(older),
        "tables": keys,
    }
    is_done = all(one["older"] == 0 for one in keys)
    return answer if is_done else Findings(answer)


def _advice(older: list[str]) -> str | None:
    """Tell what counting cannot: which key a running process has first in its ring."""
    if not older:
        return None
    return (
        f"Whether a running process still wraps new keys by {', '.join(older)} cannot be known "
        "from here. Once every process has been restarted with the new ring, run this again; "
        "remove only what is unused then."
    )
