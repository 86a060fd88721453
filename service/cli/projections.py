"""`claim-ledger projections`: what requests read, and making it anew from the log."""

import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from service.cli.parked import retry
from service.cli.target import Findings, Target, team_command
from service.clock import timestamp

if TYPE_CHECKING:
    from projections.compare import Compared
    from projections.parking import Parked
    from projections.read_model import ReadModel
    from projections.rebuild import Advance, Workshop
    from projections.rebuild_aside import Aside
    from projections.rebuild_swap import Made, Swapped

    One = Callable[[Workshop, ReadModel, Advance], Awaitable["Done"]]


class Done(NamedTuple):
    """What was done with a read model: its row of the answer, and what was found wrong."""

    row: dict[str, Any]
    compared: "Compared | None" = None
    put_aside: "Sequence[Aside]" = ()


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
    """
    import asyncio

    from projections.parking import parked
    from projections.status import HeadWatch, progress

    service = target.service
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
@team_command
async def rebuild(
    target: Target, name: str | None, ledger: str | None, *, everything: bool, if_equal: bool
) -> dict[str, Any]:
    """Make a read model anew from the log, beside the live one, and swap it in under traffic.

    Rows that differ are reported, and mended by the swap: that is what a rebuild is for. The old
    rows are kept for `projections rollback`. It can be interrupted at any moment. Events that
    cannot be read are parked with their streams (catch-up read models), or refuse the rebuild; what
    is parked ends it with 1.
    """
    if (name is None) != everything:
        raise click.UsageError("Give the name of a read model, or --all.")

    async def one(shop: "Workshop", model: "ReadModel", advance: "Advance") -> Done:
        done = await shop.rebuild(model, advance, if_equal=if_equal)
        swapped, different = done.swapped, done.compared.total
        row = {
            "seconds": round(done.seconds, 3),
            "events": done.events,
            "rows": done.compared.rows,
            "differences": different,
            "swapped": swapped is not None,
            "mended": different if swapped else 0,
            "position": swapped.position if swapped else None,
        }
        return Done(row, done.compared, done.put_aside)

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

    async def one(shop: "Workshop", model: "ReadModel", advance: "Advance") -> Done:
        return Done(_swapped(await shop.rollback(model, advance)))

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
    Events that cannot be read, and what follows them in their streams, are put aside and listed.
    """

    async def one(shop: "Workshop", model: "ReadModel", advance: "Advance") -> Done:
        compared, aside = await shop.verify(model, advance)
        return Done({"rows": compared.rows, "differences": compared.total}, compared, aside)

    answer = await _each(target, _chosen(target, name, ledger), "verifying", one, "verified")
    return Findings(answer) if answer["differences"] or answer["put_aside"] else answer


def _chosen(target: Target, name: str | None, ledger: str | None) -> "list[ReadModel]":
    """Answer the read models that are meant; a name that there is not is wrong usage."""
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
    from projections.read_model import RebuildRefused
    from projections.rebuild import workshop
    from service.ledger.sequencer import Sequencer

    _give_way()
    answer: dict[str, list[dict[str, Any]]] = {done: [], "differences": [], "put_aside": []}
    for model in models:
        which = {"ledger": model.ledger.name, "name": model.name}
        size = (await Sequencer(model.ledger.database).lag()).size
        try:
            async with workshop(target.service.settings.database_url, model.ledger.name) as shop:
                with _bar(f"{doing} {model.ledger.name}.{model.name}", size) as advance:
                    found = await one(shop, model, advance)
        except RebuildRefused as refused:
            raise click.ClickException(
                f"{model.name} ({model.ledger.name}): {refused}"
            ) from refused
        answer[done].append(which | found.row)
        answer["differences"] += [which | row for row in _listed(found.compared)]
        answer["put_aside"] += [which | _aside(event) for event in found.put_aside]
    return answer


def _swapped(swapped: "Swapped") -> dict[str, Any]:
    return {
        "position": swapped.position,
        **_made("live", swapped.live),
        **_made("kept", swapped.kept),
    }


def _made(which: str, made: "Made | None") -> dict[str, Any]:
    """Answer how rows came to be; without a time they were never rebuilt."""
    at = timestamp(made.at) if made and made.at else None
    return {f"{which}_version": made.version if made else None, f"{which}_made_at": at}


def _aside(event: "Aside") -> dict[str, Any]:
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
