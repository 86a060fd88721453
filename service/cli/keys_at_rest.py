"""`claim-ledger keys-at-rest`: the keys in the database, and the master keys that wrap them."""

from service.app.bootstrap import Service
from service.cli.target import Fields, Findings, Target, team_command
from service.cli.terminal import progress
from service.privacy.log_pages import log_size
from service.privacy.lost_keys import find_lost_keys
from service.privacy.rotation import (
    DATA_KEYS,
    EVENT_KEYS,
    SERVICE_KEYS,
    SESSIONS,
    SIGN_IN_LINKS,
    Rotation,
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
    """Search every ledger; return Findings if keys are lost."""
    events, lost = 0, []
    for ledger in service.ledgers:
        with progress(f"searching {ledger.name}", await log_size(ledger)) as advance:
            found = await find_lost_keys(ledger, advance)
        events += found.events
        lost += [{"ledger": ledger.name} | key._asdict() for key in found.keys]
    answer: Fields = {"events_lost": events, "lost_keys": lost}
    return Findings(answer) if events else answer


async def rotate_all(service: Service) -> Fields:
    """Rewrap every ledger's keys; return Findings if some are left."""
    ring = service.accounts.master_keys
    tables = [(ledger.database, DATA_KEYS) for ledger in service.ledgers]
    accounts = service.accounts.database
    tables += [(accounts, kept) for kept in (SERVICE_KEYS, EVENT_KEYS, SESSIONS, SIGN_IN_LINKS)]
    newest, *older = ring.ids
    in_use: set[str] = set()
    missing: set[str] = set()
    rows: list[Fields] = []
    for database, kept in tables:
        rotation = Rotation(database, kept, ring)
        with progress(f"{database.schema} {kept.name}", await rotation.older()) as advance:
            outcome = await rotation.run(advance)
        in_use.update(outcome.wrapped)
        missing.update(outcome.unopened)
        row = {
            "ledger": database.schema,
            "keys": kept.name,
            "rewrapped": outcome.rewrapped,
            "newest": outcome.wrapped[newest],
            "older": outcome.wrapped.total() - outcome.wrapped[newest],
            "unopened": outcome.unopened.total(),
        }
        rows.append(row)
    answer = {
        "newest": newest,
        "unused": [key for key in older if key not in in_use],
        "still_used": [key for key in older if key in in_use],
        "not_opened_by_ring": sorted(missing),
        "before_removing": _advice(older),
        "tables": rows,
    }
    is_done = all(row["older"] == 0 for row in rows)
    return answer if is_done else Findings(answer)


def _advice(older: list[str]) -> str | None:
    """Return a warning about what counts cannot show: which key a running process wraps with."""
    if not older:
        return None
    return (
        f"Whether a running process still wraps new keys with {', '.join(older)} cannot be known "
        "from here. Restart every process with the new ring, then run this again; remove only "
        "what is unused then."
    )
