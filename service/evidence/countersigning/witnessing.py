"""Submitting a ledger's newest checkpoint to a witness, without making signing wait."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from service.archive.port import Archive, ArchiveUnavailable
from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.signatures import add_signature
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.cosignature import WitnessKey
from service.evidence.countersigners import Countersigners
from service.evidence.countersigning.newest import Newest, newest
from service.evidence.countersigning.pace import Pace
from service.evidence.countersigning.witness_client import (
    Declined,
    Inconsistent,
    OtherSize,
    Post,
    cosigned,
    request_body,
)
from service.evidence.note import NoteSignature
from service.evidence.tree.nodes import TreeAltered
from service.evidence.tree.signed_tree import SignedTree
from service.http.posting import Unanswered, post
from service.ledger.sql import queries

_SIZES_MAX: Final = 3
"""So often a witness may say that it is at another size: another worker may be asking, too."""

_SQL = queries("service.evidence.countersigning")

log = structlog.get_logger()


class Witnessing:
    """Asks one witness to sign one ledger's newest checkpoint, with all of the witness's keys.

    Several workers may do so: a witness signs the same checkpoint again, and the first line of each
    key counts.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        archive: Archive | None,
        url: str,
        keys: Sequence[WitnessKey],
        *,
        post: Post = post,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`archive` gets the cosignatures."""
        self._checkpoints = checkpoints
        self._archive = archive
        self._url = url
        self._keys = keys
        self._signers = Countersigners(keys)
        self._post = post
        self._pace = Pace(monotonic)
        self._signed_size: dict[str, int] = {}

    async def step(self) -> int | None:
        """Return 1 if the witness signed; None: it is not time, which a clock tells."""
        if not self._pace.is_due():
            return None
        try:
            found = await newest(self._checkpoints, self._signers)
        except ArchiveUnavailable:
            found = None
        if found is None or len(found.signed) == len(self._keys):
            return 0
        try:
            await self._submit(found)
        except Inconsistent:
            await self._note_refusal(found.checkpoint)
            return 0
        except (ArchiveUnavailable, Declined, Unanswered, TreeAltered) as error:
            self._pace.failed()
            name = type(error).__name__
            ledger = self._checkpoints.ledger.name
            log.warning("witness did not sign", ledger=ledger, error_type=name)
            return 0
        self._pace.succeeded()
        return 1

    async def _submit(self, found: Newest) -> None:
        checkpoint = found.checkpoint
        database = self._checkpoints.ledger.database
        for signature in await self._cosigned(found):
            if signature.key not in found.signed:
                await add_signature(database, self._archive, checkpoint, signature)
        self._signed_size = {checkpoint.origin: checkpoint.size}
        for key in self._keys:
            await database.background.fetch(_SQL.withdraw_refusal, *key.which)

    async def _cosigned(self, found: Newest) -> list[NoteSignature]:
        checkpoint = found.checkpoint
        old_size = self._signed_size.get(checkpoint.origin, 0)
        for _ in range(_SIZES_MAX):
            proof = await self._proof(old_size, checkpoint)
            body = request_body(old_size, proof, found.note)
            try:
                return await cosigned(self._post, self._url, self._keys, body, checkpoint)
            except OtherSize as other:
                old_size = other.size
            if old_size > checkpoint.size:
                await self._refuse_ahead(old_size)
        raise Declined("it is at another size each time")

    async def _proof(self, old_size: int, checkpoint: Checkpoint) -> list[bytes]:
        if old_size in {0, checkpoint.size}:
            return []
        tree = SignedTree.of(self._checkpoints.ledger.database, checkpoint)
        return await tree.consistency_proof(old_size)

    async def _refuse_ahead(self, size: int) -> None:
        """Raise Declined if the log has a newer checkpoint meanwhile, or else Inconsistent."""
        now = await newest(self._checkpoints, self._signers)
        if now is not None and now.checkpoint.size >= size:
            raise Declined("another process was faster")
        raise Inconsistent(
            f"it has signed a checkpoint of {counted(size, 'event')}, which we do not have"
        )

    async def _note_refusal(self, checkpoint: Checkpoint) -> None:
        """Raise an alarm until the witness signs again, and ask later."""
        self._pace.failed()
        ledger = self._checkpoints.ledger
        log.error("witness finds a fork", ledger=ledger.name)
        for key in self._keys:
            row = (*key.which, checkpoint.origin, checkpoint.size)
            await ledger.database.background.fetch(_SQL.note_refusal, *row)
