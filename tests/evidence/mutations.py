"""Single changes to a log, each with the positions that a verifier may name for it."""

# ruff: noqa: S608 - tables and columns are drawn from lists in this file
from collections.abc import Awaitable, Callable

from service.ledger.merkle import leaf_hash, leaf_record
from tests.evidence.scene import Named, Scene, Unchanged, at, insert_row, swap
from tests.evidence.sealed_log import COLUMNS, ORIGIN, SIZE, SIZES

Change = Callable[[Scene], Awaitable[Named]]


async def alter_event(scene: Scene) -> Named:
    """Change a value of a numbered event."""
    row, column = scene.row(), scene.random.choice(COLUMNS)
    value = scene.altered(getattr(row, column))
    await scene.run(
        f"update accounts.events set {column} = $1 where append_id = $2", value, row.append_id
    )
    other = scene.log.position_of(value) if column == "append_id" else None
    return at(min(row.position, other or row.position))


async def alter_log(scene: Scene) -> Named:
    """Change a value of a row of the log."""
    row = scene.row()
    values = {"position": row.position, "append_id": row.append_id}
    values |= {"leaf_hash": leaf_hash(leaf_record(*row))}
    column = scene.random.choice([*values])
    value = scene.altered(values[column])
    sql = f"update accounts.log set {column} = $1 where position = $2"
    await scene.run(sql, value, row.position)
    is_taken = column == "position" and value is not None and 1 <= value <= SIZE
    return at(min(row.position, value) if is_taken else row.position)


async def alter_head(scene: Scene) -> Named:
    """Change the size, the tree or the id of the head."""
    column = scene.random.choice(["id", "size", "tree"])
    value = scene.altered(await scene.connection.fetchval(f"select {column} from accounts.head"))
    await scene.run(f"update accounts.head set {column} = $1", value)
    if column != "size" or value is None or value < 0:
        return at(SIZE)
    return at(min(value, SIZE) + 1)


async def alter_checkpoint(scene: Scene) -> Named:
    """Change a value of a stored checkpoint."""
    size, column = (
        scene.random.choice(SIZES),
        scene.random.choice(["origin", "size", "note", "tree"]),
    )
    sql = f"select {column} from accounts.checkpoints where size = $1"
    value = scene.altered(await scene.connection.fetchval(sql, size))
    if (column, value) == ("tree", None):  # allowed: a checkpoint's root is made without it too
        raise Unchanged
    await scene.run(f"update accounts.checkpoints set {column} = $1 where size = $2", value, size)
    is_there = column == "size" and value is not None and 1 <= value <= SIZE
    return at(min(size, value) if is_there else size)


async def alter_pending(scene: Scene) -> Named:
    """Let a numbered or an unknown event wait in place of a waiting one."""
    value = scene.altered(old := scene.random.choice(scene.log.waiting))
    await scene.run("update accounts.pending set append_id = $1 where append_id = $2", value, old)
    return at(scene.log.position_of(value) or SIZE + 1)


async def delete(scene: Scene) -> Named:
    """Delete a row of the log, an event, or both."""
    row, tables = scene.row(), scene.random.choice([["events"], ["log"], ["log", "events"]])
    for table in tables:
        await scene.run(f"delete from accounts.{table} where append_id = $1", row.append_id)
    return at(row.position)


async def delete_waiting(scene: Scene) -> Named:
    """Delete a waiting event, or its row in the queue."""
    table, append_id = (
        scene.random.choice(["events", "pending"]),
        scene.random.choice(scene.log.waiting),
    )
    await scene.run(f"delete from accounts.{table} where append_id = $1", append_id)
    return at(SIZE + 1)


async def delete_checkpoint(scene: Scene) -> Named:
    """Delete a stored checkpoint, which was published."""
    size = scene.random.choice(SIZES)
    await scene.run("delete from accounts.checkpoints where size = $1", size)
    return at(size)


async def delete_head(scene: Scene) -> Named:
    """Delete the head."""
    await scene.run("delete from accounts.head")
    return at(SIZE)


async def truncate(scene: Scene) -> Named:
    """Truncate a table, or delete the end of the log or of the events."""
    table = scene.random.choice(["log", "events", "checkpoints", "end of log", "end of events"])
    if table.startswith("end of "):
        row = scene.row()
        table = table.removeprefix("end of ")
        await scene.run(f"delete from accounts.{table} where append_id >= $1", row.append_id)
        return at(min(one.position for one in scene.log.rows if one.append_id >= row.append_id))
    await scene.connection.execute(f"truncate accounts.{table} cascade")
    return at(SIZES[0] if table == "checkpoints" else 1)


async def insert_event(scene: Scene) -> Named:
    """Insert an unnumbered event in a stream of its own, new or as a copy."""
    append_id = scene.random.choice([scene.random.randrange(1, 70), -5, 1 << 62])
    known = {row.append_id for row in scene.log.rows} | {*scene.log.waiting}
    if append_id in known:
        raise Unchanged
    await insert_row(scene, append_id, scene.row().state)
    return at(scene.log.place_of_stray(append_id))


async def insert_log(scene: Scene) -> Named:
    """Insert a row of the log with a new event, another row's event, or none."""
    position = scene.random.choice([SIZE + 1, SIZE + 1, scene.row().position])
    append_id = scene.random.choice([2_000, scene.row().append_id])
    if scene.random.random() < 0.5:
        append_id = 3_000
        await insert_row(scene, append_id, b"{}")
    leaf = leaf_hash(scene.random.randbytes(32))
    await scene.run("insert into accounts.log values ($1, $2, $3)", position, append_id, leaf)
    return at(position)


async def insert_checkpoint(scene: Scene) -> Named:
    """Insert a checkpoint of another size or origin under an existing note."""
    size = scene.random.choice([*range(-1, SIZE + 10), 1 << 62])
    origin = scene.random.choice([ORIGIN, "example.com/other/accounts/1", ""])
    await scene.run(
        "insert into accounts.checkpoints (origin, size, note)"
        " select $1, $2, note from accounts.checkpoints"
        " where size = $3",
        *(origin, size, scene.random.choice(SIZES)),
    )
    return at(min(size, SIZE) if size > 0 else None)


async def insert_pending(scene: Scene) -> Named:
    """Insert a queue row for an event that is numbered or does not exist."""
    append_id = scene.random.choice([scene.row().append_id, 5_000, -1])
    await scene.run("insert into accounts.pending values ($1)", append_id)
    return at(scene.log.position_of(append_id) or SIZE + 1)


async def duplicate(scene: Scene) -> Named:
    """Duplicate a whole row, which constraints refuse where they exist."""
    row, size = scene.row(), scene.random.choice(SIZES)
    table, where, position = scene.random.choice(
        [
            ("log", f"append_id = {row.append_id}", row.position),
            ("events", f"append_id = {row.append_id}", row.position),
            ("checkpoints", f"size = {size}", size),
            ("head", "true", SIZE),
            ("pending", f"append_id = {scene.log.waiting[0]}", SIZE + 1),
        ]
    )
    await scene.run(f"insert into accounts.{table} select * from accounts.{table} where {where}")
    return at(position)


async def swap_events(scene: Scene) -> Named:
    """Swap the values of two events in one column."""
    (one, other), column = scene.two(), scene.random.choice(COLUMNS)
    await swap(scene, "events", column, one, other)
    return at(one.position)


async def swap_log(scene: Scene) -> Named:
    """Swap the values of two rows of the log in one column."""
    (one, other), column = scene.two(), scene.random.choice(["position", "append_id", "leaf_hash"])
    await swap(scene, "log", column, one, other)
    return at(one.position)


async def swap_checkpoints(scene: Scene) -> Named:
    """Swap the notes of two checkpoints."""
    one, other = sorted(scene.random.sample(SIZES, 2))
    await scene.run(
        "update accounts.checkpoints as c set note = o.note from accounts.checkpoints as o"
        " where (c.size = $1 and o.size = $2) or (c.size = $2 and o.size = $1)",
        *(one, other),
    )
    return at(one)


SIMPLE: tuple[Change, ...] = (
    *(alter_event,) * 6,
    *(alter_log,) * 5,
    *(alter_head,) * 2,
    *(alter_checkpoint,) * 4,
    *(alter_pending, delete_waiting, delete_checkpoint, truncate, swap_checkpoints),
    *(delete, swap_events, swap_log, insert_event, insert_log) * 2,
    *(insert_checkpoint, insert_pending, duplicate, delete_head),
)
