"""Changes to a log after which all hashes in the database are recomputed."""

# ruff: noqa: S608 - tables and columns are drawn from lists in this file
from collections.abc import Awaitable, Callable

from service.ledger.merkle import CompactRange
from tests.evidence.scene import AWAY, Named, Scene, Unchanged, insert_row, swap
from tests.evidence.sealed_log import COLUMNS, SIZES

Rewrite = Callable[[Scene], Awaitable[int]]
"""Answers the first position that is another one afterwards; hashes are still to be made."""


async def rewrite_value(scene: Scene) -> int:
    """Change a value of an event under a checkpoint; an append_id in the log too."""
    row, column = scene.row(SIZES[-1]), scene.random.choice(COLUMNS)
    value = scene.altered(getattr(row, column))
    if value is None:
        raise Unchanged
    sql = f"update accounts.events set {column} = $1 where append_id = $2"
    await scene.run(sql, value, row.append_id)
    if column == "append_id":
        sql = "update accounts.log set append_id = $1 where position = $2"
        await scene.run(sql, value, row.position)
        other = scene.log.position_of(value)
        return min(row.position, other or row.position)
    return row.position


async def rewrite_without(scene: Scene) -> int:
    """Remove an event and move the rest up."""
    row = scene.row(SIZES[-1])
    for table in ("log", "events"):
        await scene.run(f"delete from accounts.{table} where append_id = $1", row.append_id)
    await _move(scene, row.position, -1)
    return row.position


async def rewrite_with(scene: Scene) -> int:
    """Insert an event, new or a copy, and move the rest down."""
    row = scene.row(SIZES[-1])
    append_id = scene.random.choice([4_000, 1 << 40])
    await insert_row(scene, append_id, scene.random.choice([b"{}", row.state]))
    await _move(scene, row.position - 1, 1)
    await scene.run(
        "insert into accounts.log values ($1, $2, $3)", row.position, append_id, bytes(32)
    )
    return row.position


async def rewrite_swapped(scene: Scene) -> int:
    """Swap two events, or their content."""
    one, other = scene.two(SIZES[-1])
    table, column = scene.random.choice(
        [("log", "position"), ("events", "state"), ("events", "topic"), ("events", "append_id")]
    )
    await swap(scene, table, column, one, other)
    return one.position


async def rewrite_shorter(scene: Scene) -> int:
    """Cut off the end; its events are removed or wait again."""
    row = scene.row(SIZES[-1])
    cut = [one.append_id for one in scene.log.rows if one.position >= row.position]
    await scene.run("delete from accounts.log where position >= $1", row.position)
    if scene.random.random() < 0.5:
        await scene.run("delete from accounts.events where append_id = any($1::bigint[])", cut)
    else:
        await scene.run("insert into accounts.pending select unnest($1::bigint[])", cut)
    return row.position


REWRITES: tuple[Rewrite, ...] = (
    *(rewrite_value,) * 3,
    *(rewrite_without, rewrite_with, rewrite_swapped, rewrite_shorter),
)


async def make_hashes_again(scene: Scene, first: int, *, forget_checkpoints: bool) -> None:
    """Recompute hashes, tree, head and checkpoints as an attacker can."""
    await scene.connection.execute(
        "update accounts.log as l set leaf_hash = h.made from ("
        " select l.position, accounts.leaf_hash(l.position, e.append_id, e.originator_id,"
        " e.originator_version, e.topic, e.state) as made"
        " from accounts.log as l join accounts.events as e using (append_id)"
        " where l.position >= $1) as h"
        " where h.position = l.position and l.leaf_hash is distinct from h.made",
        first,
    )
    tree = CompactRange()
    hashes = await scene.connection.fetch("select leaf_hash from accounts.log order by position")
    tree.extend(row["leaf_hash"] for row in hashes)
    await scene.run("update accounts.head set size = $1, tree = $2", tree.size, tree.to_bytes())
    if forget_checkpoints:
        await scene.connection.execute("delete from accounts.checkpoints where size >= $1", first)


async def _move(scene: Scene, behind: int, by: int) -> None:
    """Renumber what follows a position, by way of unused positions."""
    for far, back in ((behind, AWAY + by), (AWAY, -AWAY)):
        sql = "update accounts.log set position = position + $1 where position > $2"
        await scene.run(sql, back, far)


def covering(first: int) -> Named:
    """Return the range between the checkpoints around a position."""
    before = max((size for size in SIZES if size < first), default=0)
    return Named(before + 1, min(size for size in SIZES if size >= first))
