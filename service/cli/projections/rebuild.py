"""`claim-ledger projections rebuild`, `rollback` and `verify`."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import click

from service.cli.faults import one_line
from service.cli.instant import instant
from service.cli.options import WholeNumber, ledger_option
from service.cli.target import Target, team_command
from service.cli.terminal import progress, warn
from service.cli.verdict import Fields, Findings, Fine, listed
from service.core.counted import counted
from service.core.processors import processors
from service.core.progress import Advance
from service.ledger.read_model import ReadModel
from service.ledger.rebuild.compare import Compared
from service.ledger.rebuild.progress import SkippedEvent
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import RebuildSession, rebuild_session
from service.ledger.rebuild.swap import MadeBy
from service.ledger.sequencer import Sequencer

PUT_ASIDE_LISTED_MAX: Final = 20
"""Skipped events listed for each read model. All are counted."""
NICENESS: Final = 10
"""A rebuild yields to other processes of its machine."""
PROCESSES: Final = 2
"""By default, where there are as many processors. What they ask of PostgreSQL yields to nobody, so
more of them would be felt by requests."""
PROCESSES_MAX: Final = 16


class Completed(NamedTuple):
    """The outcome for a read model: its row of the answer, and what was found wrong."""

    row: Fields
    compared: Compared | None = None
    put_aside: Sequence[SkippedEvent] = ()


_processes_option = click.option(
    "--processes",
    type=WholeNumber(1, PROCESSES_MAX),
    help=f"How many processes build rows at once; default: {PROCESSES}, if there are as many "
    "processors. Each uses two connections of the owner.",
)

Work = Callable[[RebuildSession, ReadModel, Advance], Awaitable[Completed]]


def _spares(options: Mapping[str, object]) -> int:
    """Return how many processes work beside this one, by the options."""
    asked = options["processes"]
    return (asked if isinstance(asked, int) else min(PROCESSES, processors())) - 1


@partial(team_command, spares=_spares)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every read model.")
@ledger_option
@_processes_option
@click.option("--if-equal", is_flag=True, help="Swap only if no row differs; else exit with 1.")
@click.option(
    "--park",
    is_flag=True,
    help="Swap even if events of the live rows can no longer be applied, and park those events. "
    "Only a catch-up read model can.",
)
async def rebuild(
    target: Target,
    name: str | None,
    ledger: str | None,
    *,
    everything: bool,
    if_equal: bool,
    park: bool,
    **_processes: int | None,
) -> Fields:
    """Rebuild a read model from the log, beside the live one, and swap it in under traffic.

    Rows that differ are reported, and mended by the swap: that is what a rebuild is for. The old
    rows are kept for `projections rollback`. It can be interrupted at any moment.

    An event that cannot be read or applied refuses the rebuild. For a catch-up read model, such
    events and what follows them in their streams are counted, at most 20 are listed, and the live
    rows stay, and it exits with 1. With `--park`, the new rows are swapped in without those events,
    which are parked: `projections status` exits with 1 until `projections retry` has applied them.
    Events that were already parked stay parked and refuse nothing.
    """
    if (name is None) != everything:
        raise click.UsageError("Give the name of a read model, or --all.")
    models = _chosen(target, name, ledger)
    if park and all(model.kind == "inline" for model in models):
        raise click.UsageError(
            f"The rows of {name} are written with the events, so none can be parked. Fix the "
            "code that applies them."
        )

    async def work(session: RebuildSession, model: ReadModel, advance: Advance) -> Completed:
        done = await session.rebuild(model, advance, if_equal=if_equal, park=park)
        swapped, different = done.swapped, done.compared.total
        row = {
            "seconds": round(done.seconds, 3),
            "events": done.events,
            "rows": done.compared.rows,
            "differences": different,
            "swapped": swapped is not None,
            "mended": different if swapped else 0,
            "position": swapped.position if swapped else None,
            "live_made_at": swapped.live.at if swapped else None,
            "put_aside": len(done.put_aside),
        }
        if done.put_aside and not swapped:
            warn(
                f"{_place(model)}: {counted(len(done.put_aside), 'event')} that the live rows have "
                "cannot be applied. Nothing was swapped. Mend the code, or park by --park."
            )
        return Completed(row, done.compared, done.put_aside)

    answer = await _each(target, models, "rebuilding", work, "rebuilt")
    left = [_of(row) for row in answer["rebuilt"] if not row["swapped"]]
    if left:
        return Findings(answer, f"not swapped: {listed(left)}")
    aside = sum(row["put_aside"] for row in answer["rebuilt"])
    beside = f", {counted(aside, 'event')} parked" if aside else ""
    return Fine(answer, f"{counted(len(answer['rebuilt']), 'read model')} rebuilt{beside}")


@team_command
@click.argument("name")
@ledger_option
@click.option(
    "--live-made-at",
    type=instant,
    metavar="TIMESTAMP",
    help="Only if these are the rows that are live, by the `live_made_at` of their rebuild. "
    "Otherwise somebody else has replaced them: nothing is swapped, and it exits with 1.",
)
async def rollback(
    target: Target, name: str, ledger: str | None, live_made_at: datetime | None
) -> Fields:
    """Restore the rows that the last rebuild replaced, and bring them up to date.

    The rows that were live are kept instead, so a second rollback undoes the first, unless it is
    given `--live-made-at`. The answer says which are live now and which are kept, by the version of
    the code that made them and when. Rows of before a migration that changed their tables are
    refused.
    """

    async def work(session: RebuildSession, model: ReadModel, advance: Advance) -> Completed:
        swapped = await session.rollback(model, advance, live_made_at)
        made = _made("live", swapped.live) | _made("kept", swapped.kept)
        return Completed({"position": swapped.position} | made)

    models = _chosen(target, name, ledger)
    if len(models) > 1:
        found = ", ".join(model.ledger.name for model in models)
        raise click.UsageError(f"{name} is a read model of {found}: give --ledger.")
    answer = await _each(target, models, "rolling back", work, "rolled_back")
    return {"rolled_back": answer["rolled_back"]}


@partial(team_command, spares=_spares)
@click.argument("name", required=False)
@ledger_option
@_processes_option
async def verify(
    target: Target, name: str | None, ledger: str | None, **_processes: int | None
) -> Fields:
    """Replay the log and compare with the live rows; exits with 1 if they differ. Only reads.

    At most 20 differing rows per table are listed, by their keys and columns; all are counted.
    Events that cannot be read, and what follows them in their streams, are put aside and listed in
    the same way. Parked events are in neither the live rows nor the replay, which can be equal
    without them: they are counted, with a warning, and `projections status` exits with 1.
    """

    async def work(session: RebuildSession, model: ReadModel, advance: Advance) -> Completed:
        compared, aside, parked = await session.verify(model, advance)
        row = {
            "rows": compared.rows,
            "differences": compared.total,
            "put_aside": len(aside),
            "parked_streams": parked.streams,
            "parked_events": parked.events,
        }
        if parked.events:
            warn(
                f"{_place(model)}: {counted(parked.events, 'parked event')} of "
                f"{counted(parked.streams, 'stream')}, which the live rows lack; see `projections "
                "status` and `projections retry`."
            )
        return Completed(row, compared, aside)

    models = _chosen(target, name, ledger)
    answer = await _each(target, models, "verifying", work, "verified")
    return verified_answer(answer)


def verified_answer(answer: dict[str, list[Fields]]) -> Fields:
    """Return what a verification found, with its verdict."""
    rows = answer["verified"]
    different = [
        f"{_of(row)}: {counted(row['differences'], 'row differs', 'rows differ')}"
        for row in rows
        if row["differences"]
    ]
    if different or any(row["put_aside"] for row in rows):
        return Findings(answer, listed(different) if different else _aside(rows))
    parked = sum(row["parked_events"] for row in rows)
    beside = f", without {counted(parked, 'parked event')}" if parked else ""
    compared = counted(sum(row["rows"] for row in rows), "row")
    models = counted(
        len(rows), "read model is as the log has it", "read models are as the log has them"
    )
    return Fine(answer, f"{models}, {compared}{beside}")


def _of(row: Fields) -> str:
    return f"{row['ledger']}.{row['name']}"


def _aside(rows: list[Fields]) -> str:
    return f"{counted(sum(row['put_aside'] for row in rows), 'event')} that cannot be applied"


def _chosen(target: Target, name: str | None, ledger: str | None) -> list[ReadModel]:
    """Return the chosen read models; an unknown name is wrong usage."""
    models = [model for model in target.service.read_models if ledger in {None, model.ledger.name}]
    chosen = [model for model in models if name in {None, model.name}]
    if not chosen:
        names = sorted({model.name for model in models})
        raise click.UsageError(f"No read model {name!r}; there are {', '.join(names)}.")
    return chosen


async def _each(
    target: Target,
    models: Sequence[ReadModel],
    doing: str,
    work: Work,
    done: str,
) -> dict[str, list[Fields]]:
    """Do the work for each read model; return a row for each under `done`, and all findings."""
    os.nice(NICENESS)
    answer: dict[str, list[Fields]] = {done: [], "differences": [], "put_aside": []}
    for model in models:
        name = model.ledger.name
        which = {"ledger": name, "name": model.name}
        size = (await Sequencer(model.ledger).lag()).size
        with one_line(RebuildRefused, before=f"{_place(model)}: "):
            url = target.service.settings.database_url
            async with rebuild_session(url, name, target.spares) as session:
                with progress(f"{doing} {name}.{model.name}", size, unit="events") as advance:
                    found = await work(session, model, advance)
        answer[done].append(which | found.row)
        answer["differences"] += [
            which | row._asdict() | {"columns": ", ".join(row.columns)}
            for row in (found.compared.differences if found.compared else [])
        ]
        listed = found.put_aside[:PUT_ASIDE_LISTED_MAX]
        answer["put_aside"] += [which | event._asdict() for event in listed]
    return answer


def _made(which: str, made: MadeBy) -> Fields:
    """Return what made the rows and when; the time is None if they were never rebuilt."""
    return {f"{which}_version": made.version, f"{which}_made_at": made.at}


def _place(model: ReadModel) -> str:
    return f"{model.name} ({model.ledger.name})"
