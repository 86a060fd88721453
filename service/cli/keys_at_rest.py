"""`claim-ledger keys-at-rest`: the keys in the database, and the master keys that wrap them."""

from service.app.bootstrap import Service
from service.cli.progress import progress
from service.cli.target import Fields, Findings, Target, team_command
from service.privacy.log_pages import log_size
from service.privacy.lost_keys import find_lost_keys
from service.privacy.rotation import (
    DATA_KEYS,
    SERVICE_KEYS,
    SESSIONS,
    SIGN_IN_LINKS,
    Rotation,
    RotationOutcome,
)


@team_command
async def rotate(target: Target) -> Fields:
    """Wrap all keys with the newest master key, while the service runs.

    First add the new key behind the old one in every process's ring, then put it first in all of
    them. Exits with 1 if a key cannot be unwrapped, or a process still wraps keys with an older
    master key.
    """
    return await rotate_all(target.service)


@team_command
async def verify(target: Target) -> Fields:
    """Find data keys that are gone although no erasure explains it: their data is lost.

    Exits with 1 if there are any. An erasure leaves a `PersonalDataErased` in the log.
    """
    return await verify_all(target.service)


async def verify_all(service: Service) -> Fields:
    """Search every ledger; Findings if keys are lost."""
    events, lost = 0, []
    for ledger in service.ledgers:
        with progress(f"looking through {ledger.name}", await log_size(ledger)) as advance:
            found = await find_lost_keys(ledger, advance)
        events += found.events
        lost += [
            {"ledger": ledger.name} | key._asdict() | {"data_key": str(key.data_key)}
            for key in found.keys
        ]
    answer: Fields = {"events_lost": events, "lost_keys": lost}
    return Findings(answer) if events else answer


async def rotate_all(service: Service) -> Fields:
    """Wrap every ledger's keys anew; Findings if some are left."""
    ring = service.accounts.master_keys
    tables = [(ledger.database, DATA_KEYS) for ledger in service.ledgers]
    accounts = service.accounts.database
    tables += [(accounts, kept) for kept in (SERVICE_KEYS, SESSIONS, SIGN_IN_LINKS)]
    outcomes: list[tuple[str, str, RotationOutcome]] = []
    for database, kept in tables:
        rotation = Rotation(database, kept, ring)
        with progress(f"{database.schema} {kept.name}", await rotation.older()) as advance:
            outcomes.append((database.schema, kept.name, await rotation.run(advance)))
    newest, *older = ring.ids
    in_use = {key for _, _, outcome in outcomes for key in outcome.wrapped}
    missing = sorted({key for _, _, outcome in outcomes for key in outcome.unopened})
    tables = [
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
        "unused": [key for key in older if key not in in_use],
        "still_used": [key for key in older if key in in_use],
        "not_opened_by_ring": missing,
        "before_removing": _advice(older),
        "tables": tables,
    }
    is_done = all(table["older"] == 0 for table in tables)
    return answer if is_done else Findings(answer)


def _advice(older: list[str]) -> str | None:
    """Return what counting cannot show: which key a running process has first in its ring."""
    if not older:
        return None
    return (
        f"Whether a running process still wraps new keys with {', '.join(older)} cannot be known "
        "from here. Restart every process with the new ring, then run this again; remove only "
        "what is unused then."
    )
