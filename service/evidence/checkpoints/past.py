"""A ledger's past: its lineages, and what was published under them, held against each other."""

from collections.abc import Sequence

from service.evidence.authorisation import Unsound, lineages_so_far
from service.evidence.checkpoints.lineage import known_origins, lineages
from service.evidence.checkpoints.log_tree import LedgerForked, tree_of_log
from service.evidence.checkpoints.published import Published
from service.evidence.lineages import Lineages
from service.evidence.note import NoteKey
from service.facts.lineages import LineageBegun
from service.ledger.ledger import Ledger


class PublishedHistory:
    """What may not be contradicted by what is signed next."""

    def __init__(
        self, ledger: Ledger, keys: Sequence[NoteKey], published: Published | None
    ) -> None:
        """`keys` tell whose lineages and notes are believed."""
        self._ledger = ledger
        self._keys = keys
        self._published = published
        self.homes = {f"{key.name}/{ledger.name}" for key in keys}

    async def known(self, begun: list[LineageBegun]) -> list[LineageBegun]:
        """Return the lineages, `begun` being those that were read, once all of the past is theirs.

        Raises LedgerForked where one of them was begun by none of our keys or outside their homes,
        or where checkpoints were published under an origin that the log does not know.
        """
        strange = await self.strange(begun)
        if strange:  # another process may have begun it a moment ago
            begun = await lineages(self._ledger)
            strange = [one for one in strange if one not in known_origins(begun)]
        if strange and self._published is not None:
            sizes = await self._published.sizes(strange[-1])
            raise LedgerForked(
                f"a checkpoint of {sizes[-1]} events was published under {strange[-1]}, and the "
                "log knows nothing of it"
            )
        self._check(begun)
        return begun

    async def strange(self, begun: Sequence[LineageBegun]) -> list[str]:
        """Return the origins with checkpoints that were published and no lineage of the log."""
        if self._published is None:
            return []
        known = known_origins(begun)
        found = [one for one in await self._published.origins(self.homes) if one not in known]
        return [one for one in found if await self._published.sizes(one)]

    async def is_published(self) -> bool:
        """Return whether any checkpoint of this ledger was published, of whichever lineage."""
        if self._published is None:
            return False
        origins = await self._published.origins(self.homes)
        return any([await self._published.sizes(one) for one in origins])

    async def hold(self, begun: Sequence[LineageBegun]) -> None:
        """Hold the log against what was published under earlier lineages; raises LedgerForked.

        For a lineage that has no checkpoint yet: what comes later goes on from its first one.
        """
        lineages = self._check(begun)
        if self._published is None:
            return
        for origin in known_origins(begun) - {begun[-1].origin}:
            sizes = await self._published.sizes(origin)
            binding = [size for size in sizes if not lineages.sets_aside(origin, size)]
            if binding:
                found = await self._published.get(origin, binding[-1])
                tree = await tree_of_log(self._ledger.database, binding[-1])
                if found is None or found[0].root != tree.root():
                    raise LedgerForked(f"the first {tree.size} events are not those published")

    def _check(self, begun: Sequence[LineageBegun]) -> Lineages:
        try:
            found = lineages_so_far(begun, self._keys, self._ledger.name)
        except Unsound as error:
            raise LedgerForked(
                f"a lineage of the log is not sound: {error}; if a key was replaced, its public "
                "key belongs at the end of CLAIM_LEDGER_CHECKPOINT_KEYS"
            ) from error
        for one in found:
            if one.origin.rpartition("/")[0] not in self.homes:
                raise LedgerForked(f"the lineage {one.origin} is outside what our keys sign")
        return Lineages(found)
