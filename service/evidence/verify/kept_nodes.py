"""The stored nodes of a log's tree: each follows from those below it, the lowest from leaves."""

from collections.abc import Sequence
from typing import Final

from service.evidence.tree.hashes import StoredHashes
from service.evidence.tree.nodes import TILES_MAX
from service.evidence.tree.tile import TILE_BYTES, WIDTH, TreeNode, root_of
from service.evidence.verdict import Fault
from service.ledger.database import Connection, Database, Row
from service.ledger.merkle import split_hashes
from service.ledger.sql import Sql

_LEAVES: Final = (1 << 63) - 1
"""As many as there are."""


async def nodes_fault(connection: Connection, database: Database) -> Fault | None:
    """Return the first kept node that is not that of a log whose leaves hold."""

    async def fetch(sql: Sql, /, *args: object) -> Sequence[Row]:
        return await connection.fetch(sql.on(database.schema), *args)

    hashes = StoredHashes(database, fetch)
    stored = await hashes.stored()
    for level, nodes in sorted(stored.items()):
        for start in range(0, nodes, TILES_MAX):
            tiles = range(start, min(start + TILES_MAX, nodes))
            joined = await hashes.nodes(level, [start // WIDTH], nodes)
            kept = split_hashes(joined.get(start // WIDTH, b""))[start % WIDTH :]
            if level == 1:
                below = await hashes.leaves(tiles, _LEAVES)
            else:
                below = await hashes.nodes(level - 1, tiles, stored.get(level - 1, 0))
            for tile, node in zip(tiles, [*kept, *[b""] * len(tiles)], strict=False):
                made = below.get(tile, b"")
                if len(made) != TILE_BYTES or root_of(made) != node:
                    return node_fault(TreeNode(level, tile, node))
    return None


def node_fault(node: TreeNode) -> Fault:
    """Return the fault of a node that is not the log's."""
    first, last = node.positions
    what = f"The node of level {node.level} that is kept of positions {first} to {last}"
    return Fault(first, f"{what} is not theirs.")
