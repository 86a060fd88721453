"""`claim-ledger projections status`."""

import asyncio
from collections.abc import Iterator, Sequence

from asyncpg import PostgresError

from service.cli.checkpoint_dates import warn_ahead
from service.cli.explained_actors import ExplainedActors
from service.cli.target import Target, team_command
from service.cli.terminal import warn
from service.cli.verdict import Fields, Findings, Fine, listed
from service.core.counted import counted
from service.evidence.checkpoints.finding import Finding, beside_finding, finding
from service.evidence.log_findings import ACTORS, LogFinding
from service.ledger.database import LedgerUnavailable
from service.ledger.following.parking import parked
from service.ledger.following.status import (
    Foreign,
    HeadWatch,
    Progress,
    foreign,
    progress,
    read_only,
)
from service.ledger.ledger import Ledger
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import clear_left_over, has_left_over


@team_command
async def status(target: Target) -> Fields:
    """Show each read model's and subscriber's position and lag; exits with 1 if anything is wrong.

    Wrong is: PostgreSQL takes no writes (a standby, or somebody made it read-only), a ledger is
    stalled (events wait to be numbered and the log does not grow: no sequencer runs), a stream is
    parked, a subscriber is ahead of the log, which was cut or restored, the last checkpoint is
    dated ahead, by a clock that was wrong, an event was set aside within the last day, because this
    service did not write it, or the worker found a log that is not what was hashed or signed, more
    events of somebody who could not act than CLAIM_LEDGER_EXPLAINED_ACTORS says, or altered nodes
    of the tree. Tables that a killed rebuild or verification left behind are dropped.
    """
    service = target.service
    clock, ledgers = service.clock, service.ledgers
    for ledger in ledgers:
        await _clear_left_over(service.settings.values["DATABASE_URL"], ledger)
    heads = await asyncio.gather(*(HeadWatch(ledger, clock).watch() for ledger in ledgers))
    projections = [
        row
        for ledger, head in zip(ledgers, heads, strict=True)
        for row in await progress(ledger, service.read_models, head, clock)
    ]
    refused = [await read_only(ledger) for ledger in ledgers]
    aside = [await foreign(ledger) for ledger in ledgers]
    found = [await finding(ledger) for ledger in ledgers]
    beside = [await beside_finding(ledger) for ledger in ledgers]
    explained = ExplainedActors(service.settings)
    ahead = [await warn_ahead(service.checkpoints(ledger.name)) for ledger in ledgers]
    answer = {
        "is_moving": not any(head.is_stalled for head in heads),
        "ledgers": [
            head._asdict()
            | one._asdict()
            | {"checkpoint_ahead_seconds": seconds, "read_only": why}
            | {"verified_at": log.verified_at, "fault": log.fault}
            | {f"{kind}_fault": one.fault for kind, one in looked.items()}
            | {"actor_faults": looked[ACTORS].faults, "explained_actors": explained.of(head.ledger)}
            for head, one, seconds, why, log, looked in zip(
                heads, aside, ahead, refused, found, beside, strict=True
            )
        ],
        "projections": [row._asdict() for row in projections],
        "parked": [row for ledger in ledgers for row in await parked_rows(ledger)],
    }
    faults = [
        *(f"{one.name}: {why}" for one, why in zip(ledgers, refused, strict=True) if why),
        *(f"{head.ledger} is stalled" for head in heads if head.is_stalled),
        *(f"{_of(row)}: {row.fault}" for row in projections if row.fault),
        *(
            f"{_of(row)}: {counted(row.parked, 'event')} parked"
            for row in projections
            if row.parked
        ),
        *_of_logs(ledgers, aside, found, ahead),
        *(
            f"{ledger.name}: {one.fault}{f' In all there are {one.faults}.' * (one.faults > 1)}"
            for ledger, looked in zip(ledgers, beside, strict=True)
            for kind, one in looked.items()
            if one.faults and not _is_explained(ledger, kind, one, explained)
        ),
    ]
    if not all(one.is_bound for one in aside):
        warn("events without a MAC are numbered: `claim-ledger audit bind` ends that")
    if faults:
        return Findings(answer, listed(faults))
    behind = sum(row.lag_events for row in projections)
    follows = counted(len(projections), "read model or subscriber", "read models and subscribers")
    rest = f"{counted(behind, 'event')} behind in all" if behind else "all up to date"
    known = [
        explained.told(ledger.name, looked[ACTORS].faults)
        for ledger, looked in zip(ledgers, beside, strict=True)
        if looked[ACTORS].faults
    ]
    told = ", ".join((f"{counted(len(ledgers), 'ledger')} numbered", follows, rest, *known))
    return Fine(answer, told)


def _is_explained(ledger: Ledger, kind: str, found: LogFinding, explained: ExplainedActors) -> bool:
    """Return whether findings are ones that an operator has explained."""
    return kind == ACTORS and found.is_of_the_log and explained.cover(ledger.name, found.faults)


def _of_logs(
    ledgers: Sequence[Ledger],
    aside: Sequence[Foreign],
    found: Sequence[Finding],
    ahead: Sequence[float],
) -> Iterator[str]:
    """Yield what is wrong with each log itself."""
    for ledger, foreign_events, log, seconds in zip(ledgers, aside, found, ahead, strict=True):
        if foreign_events.set_aside_lately:
            lately = counted(foreign_events.set_aside_lately, "event")
            yield f"{ledger.name}: {lately} set aside within a day"
        if log.fault:
            yield f"{ledger.name}: {log.fault}"
        if seconds:
            yield f"{ledger.name}: the last checkpoint is dated ahead"


def _of(row: Progress) -> str:
    return f"{row.ledger} {row.name}"


async def _clear_left_over(owner_url: str | None, ledger: Ledger) -> None:
    """Drop what a killed rebuild left behind; warn where there is no owner's login to do it."""
    if not await has_left_over(ledger):
        return
    why: object = "CLAIM_LEDGER_DATABASE_URL is not set"
    if owner_url is not None:
        try:
            await clear_left_over(owner_url, ledger.name)
        except (RebuildRefused, LedgerUnavailable, PostgresError) as error:
            why = error
        else:
            return
    warn(
        f"{ledger.name}_next has tables of a rebuild or verification, which cannot be dropped if "
        f"it was killed ({why}): as the owner, `projections verify` drops them."
    )


async def parked_rows(ledger: Ledger) -> list[Fields]:
    """Return a ledger's parked events, for printing."""
    return [{"ledger": ledger.name} | event._asdict() for event in await parked(ledger.database)]
