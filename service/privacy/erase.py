"""An erasure as a person asks for it: a claim with its documents, an entity and its claims."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from service.archive.port import ArchiveUnavailable
from service.ledger.database import Row
from service.ledger.events import Cause
from service.privacy.documents import Removed
from service.privacy.erasures import Erased, Subject
from service.privacy.reapply import Parts
from service.storage.port import StorageUnavailable

Advance = Callable[[int], object]


class ErasureDone(NamedTuple):
    """What came of it. `claims` are those of an entity, as they were before theirs were erased."""

    erased: Erased
    objects: Removed
    claims: list[Row]


class DocumentsRemain(Exception):
    """Every key is destroyed, and storage failed; `str()` is its first fault.

    Documents of `left` claims, of `claims` in all, may still be there.
    """

    def __init__(self, left: int, claims: int, fault: StorageUnavailable) -> None:
        """Keep the figures."""
        super().__init__(str(fault))
        self.left = left
        self.claims = claims


async def erase_claim(parts: Parts, claim: Subject, reason: str, cause: Cause) -> ErasureDone:
    """Erase a claim, then remove its documents.

    Raises ArchiveUnavailable when nothing was erased, DocumentsRemain when documents remain.
    """
    erased = await parts.erasures.erase(claim, reason, cause)
    return ErasureDone(erased, await _removed(parts, [claim], _unheard), [])


async def erase_entity(
    parts: Parts,
    entity: Subject,
    reason: str,
    cause: Cause,
    each_claim: Callable[[list[Row]], Advance] | None,
) -> ErasureDone:
    """Erase an entity; with `each_claim` its claims too, each by an event of its own.

    `each_claim` is told of them and answers who hears of each twice: when its key is destroyed,
    and when its documents are gone. All keys come first, for they wait for no document store. The
    claims are looked up afterwards: the erasure waits for those that were being created.

    Raises ArchiveUnavailable, which says how much was erased, and DocumentsRemain.
    """
    erased = await parts.erasures.erase(entity, reason, cause)
    claims = await parts.erasures.claims_of(entity)
    if each_claim is None:
        return ErasureDone(erased, Removed(0, 0), claims)
    advance = each_claim(claims)
    subjects = [Subject("claim", row["claim_id"], row["stream_id"]) for row in claims]
    for before, claim in enumerate(subjects):
        try:
            await parts.erasures.erase(claim, reason, cause)
        except ArchiveUnavailable as error:
            told = f"{error}; the entity and {before} of its {len(claims)} claims are erased"
            raise ArchiveUnavailable(told) from error
        advance(1)
    return ErasureDone(erased, await _removed(parts, subjects, advance), claims)


async def _removed(parts: Parts, claims: Sequence[Subject], advance: Advance) -> Removed:
    """Remove the documents of every claim; one that fails holds up no other."""
    objects = left = 0
    faults: list[StorageUnavailable] = []
    for claim in claims:
        try:
            removed = await parts.documents.remove(claim)
        except StorageUnavailable as error:
            faults.append(error)
        else:
            objects, left = objects + removed.objects, left + removed.left
        advance(1)
    if faults:
        raise DocumentsRemain(len(faults), len(claims), faults[0]) from faults[0]
    return Removed(objects, left)


def _unheard(_steps: int) -> None:
    pass
