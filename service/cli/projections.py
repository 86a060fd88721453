"""`claim-ledger projections`: what requests read, and making it anew from the log."""

import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from service.cli.parked import retry
from service.cli.target import Findings, Target, team_command
from service.core.clock import timestamp

if TYPE_CHECKING:
    from service.ledger.following.parking import Parked
    from service.ledger.ledger import Ledger
    from service.ledger.read_model import ReadModel
    from service.ledger.rebuild.compare import Compared
    from service.ledger.rebuild.progress import SkippedEvent
    from service.ledger.rebuild.session import Advance, RebuildSession
    from service.ledger.rebuild.swap import MadeBy, Swapped

    One = Callable[[RebuildSession, ReadModel, Advance], Awaitable["Completed"]]


class Completed(NamedTuple):
    """What was done with a read model: its row of the answer, and what was found wrong."""

    row: dict[str, Any]
    compared: "Compared | None" = None
    put_aside: "Sequence[SkippedEvent]" = ()


PUT_ASIDE_LISTED_MAX: Final = 20
"""Of each read model. All are counted."""
NICENESS: Final = 10
"""A rebuild gives way to whatever else runs on its machine."""

_ledger = click.option(
    "--ledger", type=click.Choice(["accounts", "live", "test"]), help="Only this ledger."
)


@click.group()
def projections() -> None:
    """Read models: how far they are, making them anew from the log, going back.

    `rebuild`, `rollback` and `verify` work as the owner of the tables, over a direct connection to
    PostgreSQL: not through a transaction pooler.
    """


projections.add_command(retry)


@projections.command()
@team_command
async def status(target: Target) -> dict[str, Any]:
    """Each read model's and subscriber's position and lag; ends with 1 where something is wrong.

    Wrong is: a ledger is stalled (events wait for a number and the log does not grow: no sequencer
    runs), a stream is parked, or a subscriber is ahead of the log, which was cut or restored.
    Tables that a killed rebuild or verification left are dropped.
    """
    import asyncio

    from service.ledger.following.parking import parked
    from service.ledger.following.status import HeadWatch, progress

    service = target.service
    for ledger in service.ledgers:
        await _clear_left_over(service.settings.database_url, ledger)
    clock, ledgers = service.clock, service.ledgers
    heads = await asyncio.gather(*(HeadWatch(one, clock).watch() for one in ledgers))
    found = [
        await progress(one, service.read_models, head, clock)
        for one, head in zip(ledgers, heads, strict=True)
    ]
    answer = {
        "is_moving": not any(head.is_stalled for head in heads),
        "ledgers": [head._asdict() for head in heads],
        "projections": [one._asdict() for group in found for one in group],
        "parked": [
            {"ledger": ledger.name} | _parked(one)
            for ledger in ledgers
            for one in await parked(ledger.database)
        ],
    }
    is_well = answer["is_moving"] and not any(
        one.parked or one.fault for group in found for one in group
    )
    return answer if is_well else Findings(answer)


@projections.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every read model.")
@_ledger
@click.option("--if-equal", is_flag=True, help="Swap only where no row differs; else end with 1.")
@click.option(
    "--park",
    is_flag=True,
    help="Swap also where events of the live rows can no longer be applied, and park those events.",
)
@team_command
async def rebuild(
    target: Target,
    name: str | None,
    ledger: str | None,
    *,
    everything: bool,
    if_equal: bool,
    park: bool,
) -> dict[str, Any]:
    """Make a read model anew from the log, beside the live one, and swap it in under traffic.

    Rows that differ are reported, and mended by the swap: that is what a rebuild is for. The old
    rows are kept for `projections rollback`. It can be interrupted at any moment.

    An event that cannot be read or applied refuses the rebuild. Of a catch-up read model, such
    events are listed with what follows them in their streams, at most 20, all are counted, and the
    live rows stay: with `--park` the new rows are swapped in without them, and they are parked.
    Either ends with 1. Events that were parked before stay parked and refuse nothing.
    """
    if (name is None) != everything:
        raise click.UsageError("Give the name of a read model, or --all.")

    async def one(shop: "RebuildSession", model: "ReadModel", advance: "Advance") -> Completed:
        done = await shop.rebuild(model, advance, if_equal=if_equal, park=park)
        swapped, different = done.swapped, done.compared.total
        row = {
            "seconds": round(done.seconds, 3),
            "events": done.events,
            "rows": done.compared.rows,
            "differences": different,
            "swapped": swapped is not None,
            "mended": different if swapped else 0,
            "position": swapped.position if swapped else None,
            "put_aside": len(done.put_aside),
        }
        if done.put_aside and not swapped:
            _warn(
                f"{_place(model)}: {len(done.put_aside)} events that the live rows have cannot be "
                "applied. Nothing was swapped. Mend the code, or park them by --park."
            )
        return Completed(row, done.compared, done.put_aside)

    answer = await _each(target, _chosen(target, name, ledger), "rebuilding", one, "rebuilt")
    is_well = all(row["swapped"] for row in answer["rebuilt"]) and not answer["put_aside"]
    return answer if is_well else Findings(answer)


@projections.command()
@click.argument("name")
@_ledger
@team_command
async def rollback(target: Target, name: str, ledger: str | None) -> dict[str, Any]:
    """Put the rows that the last rebuild replaced back in place, brought up to date.

    Those that were live are kept instead: a second rollback goes forward again. The answer says
    which are live now and which are kept, by the version of the code that made them and when.
    """

    async def one(shop: "RebuildSession", model: "ReadModel", advance: "Advance") -> Completed:
        return Completed(_swapped(await shop.rollback(model, advance)))

    models = _chosen(target, name, ledger)
    if len(models) > 1:
        found = ", ".join(model.ledger.name for model in models)
        raise click.UsageError(f"{name} is a read model of {found}: give --ledger.")
    answer = await _each(target, models, "rolling back", one, "rolled_back")
    return {"rolled_back": answer["rolled_back"]}


@projections.command()
@click.argument("name", required=False)
@_ledger
@team_command
async def verify(target: Target, name: str | None, ledger: str | None) -> dict[str, Any]:
    """Replay the log and compare with the live rows; changes nothing; ends with 1 on a difference.

    At most 20 differing rows a table are listed, by their keys and columns; all are counted.
    Events that cannot be read, and what follows them in their streams, are put aside and listed in
    the same way. Events that are parked are in neither the live rows nor the replay, which can be
    equal without them: they are counted, with a warning, and `projections status` ends with 1.
    """

    async def one(shop: "RebuildSession", model: "ReadModel", advance: "Advance") -> Completed:
        compared, aside, parked = await shop.verify(model, advance)
        row = {
            "rows": compared.rows,
            "differences": compared.total,
            "put_aside": len(aside),
            "parked_streams": parked.streams,
            "parked_events": parked.events,
        }
        if parked.events:
            _warn(
                f"{_place(model)}: {parked.events} events of {parked.streams} streams are parked. "
                "The live rows lack them; see `projections status` and `projections retry`."
            )
        return Completed(row, compared, aside)

    answer = await _each(target, _chosen(target, name, ledger), "verifying", one, "verified")
    return Findings(answer) if answer["differences"] or answer["put_aside"] else answer


def _chosen(target: Target, name: str | None, ledger: str | None) -> "list[ReadModel]":
    """Return the read models that are meant; a name that there is not is wrong usage."""
    models = target.service.read_models
    chosen = [
        model
        for model in models
        if name in {None, model.name} and ledger in {None, model.ledger.name}
    ]
    if not chosen:
        names = sorted({one.name for one in models if ledger in {None, one.ledger.name}})
        raise click.UsageError(f"No read model {name!r}; there are {', '.join(names)}.")
    return chosen


async def _each(
    target: Target,
    models: "Iterable[ReadModel]",
    doing: str,
    one: "One",
    done: str,
) -> dict[str, list[dict[str, Any]]]:
    """Do the same with each read model; answer under `done` a row for each, and what is wrong."""
    from service.ledger.read_model import RebuildRefused
    from service.ledger.rebuild.session import rebuild_session
    from service.ledger.sequencer import Sequencer

    _give_way()
    answer: dict[str, list[dict[str, Any]]] = {done: [], "differences": [], "put_aside": []}
    for model in models:
        which = {"ledger": model.ledger.name, "name": model.name}
        size = (await Sequencer(model.ledger.database).lag()).size
        try:
            async with rebuild_session(
                target.service.settings.database_url, model.ledger.name
            ) as shop:
                with _bar(f"{doing} {model.ledger.name}.{model.name}", size) as advance:
                    found = await one(shop, model, advance)
        except RebuildRefused as refused:
            raise click.ClickException(f"{_place(model)}: {refused}") from refused
        answer[done].append(which | found.row)
        answer["differences"] += [which | row for row in _listed(found.compared)]
        listed = found.put_aside[:PUT_ASIDE_LISTED_MAX]
        answer["put_aside"] += [which | _aside(event) for event in listed]
    return answer


def _swapped(swapped: "Swapped") -> dict[str, Any]:
    return {
        "position": swapped.position,
        **_made("live", swapped.live),
        **_made("kept", swapped.kept),
    }


def _made(which: str, made: "MadeBy") -> dict[str, Any]:
    """Return how rows came to be; without a time they were never rebuilt."""
    at = timestamp(made.at) if made.at else None
    return {f"{which}_version": made.version, f"{which}_made_at": at}


def _place(model: "ReadModel") -> str:
    return f"{model.name} ({model.ledger.name})"


def _warn(message: str) -> None:
    """Tell a person; a program has it in the answer."""
    if not click.get_current_context().params["as_json"]:
        click.echo(f"Warning: {message}", err=True)


async def _clear_left_over(database_url: str, ledger: "Ledger") -> None:
    """Drop what a killed rebuild left; a login that cannot is told that it is there."""
    from asyncpg import PostgresError

    from service.ledger.database import LedgerUnavailable
    from service.ledger.read_model import RebuildRefused
    from service.ledger.rebuild.session import clear_left_over, has_left_over

    if not await has_left_over(ledger):
        return
    try:
        await clear_left_over(database_url, ledger.name)
    except (RebuildRefused, LedgerUnavailable, PostgresError) as error:
        _warn(
            f"{ledger.name}_next has tables of a rebuild or verification, which cannot be dropped "
            f"if it was killed ({error}): as the owner, `projections verify` drops them."
        )


def _aside(event: "SkippedEvent") -> dict[str, Any]:
    return event._asdict() | {"stream_id": str(event.stream_id)}


def _parked(one: "Parked") -> dict[str, Any]:
    told = {"stream_id": str(one.stream_id), "parked_at": timestamp(one.parked_at)}
    return one._asdict() | told


def _listed(compared: "Compared | None") -> list[dict[str, Any]]:
    return [
        one._asdict() | {"columns": ", ".join(one.columns)}
        for one in (compared.differences if compared else [])
    ]


@contextmanager
def _bar(label: str, length: int) -> Generator[Callable[[int], object]]:
    """Show positions, rate and time left to a person who waits."""
    if not length or not sys.stderr.isatty():
        yield lambda _steps: None
        return
    started = time.monotonic()

    def rate(passed: int | None) -> str | None:
        return f"{passed / (time.monotonic() - started):,.0f} events/s" if passed else None

    with click.progressbar(
        length=length, label=label, file=sys.stderr, item_show_func=rate, show_pos=True
    ) as bar:
        yield lambda steps: bar.update(steps, bar.pos + steps)


def _give_way() -> None:
    import os

    os.nice(NICENESS)
