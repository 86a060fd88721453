"""An erasure on request: a claim with its documents, or an entity with its claims."""

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
    """The outcome. `claims` are those of an entity, as they were before they were erased.

    Of these, `foreign` were left alone: no event of this service says that they are the entity's.
    """

    erased: Erased
    objects: Removed
    claims: list[Row]
    foreign: Sequence[str] = ()


class DocumentsRemain(Exception):
    """Every key is destroyed, and storage failed; `str()` is its first fault.

    Documents of `left` claims, of `claims` in all, may still be there.
    """

    def __init__(self, left: int, claims: int, fault: StorageUnavailable) -> None:
        """Keep the counts."""
        super().__init__(str(fault))
        self.left = left
        self.claims = claims


async def erase_claim(parts: Parts, claim: Subject, reason: str, cause: Cause) -> ErasureDone:
    """Erase a claim, then remove its documents.

    Raises ArchiveUnavailable when nothing was erased, DocumentsRemain when documents remain.
    """
    erased = await parts.erasures.erase(claim, reason, cause)
    return ErasureDone(erased, await _removed(parts, [claim], lambda _steps: None), [])


async def erase_entity(
    parts: Parts,
    entity: Subject,
    reason: str,
    cause: Cause,
    each_claim: Callable[[list[Row]], Advance] | None,
) -> ErasureDone:
    """Erase an entity; with `each_claim` its claims too, each by an event of its own.

    `each_claim` receives the claims and returns a callback, which is called twice for each: when
    its key is destroyed, and when its documents are deleted. All keys come first, since they do
    not depend on storage. Claims and links are read from the log; those that are made meanwhile,
    from read models, when the entity is erased, which waits for claims that are being created.

    Raises ArchiveUnavailable, whose text says how much was erased, and DocumentsRemain.
    """
    named = await parts.erasures.named(entity)
    erased = await parts.erasures.erase(entity, reason, cause, named.links)
    claims = await parts.erasures.claims_of(entity, named)
    if each_claim is None:
        return ErasureDone(erased, Removed(0, 0), claims)
    advance = each_claim(claims)
    subjects: list[Subject] = []
    foreign: list[str] = []
    for row in claims:
        claim = Subject("claim", row["claim_id"], row["stream_id"])
        if await parts.erasures.is_claim_of(claim, entity):
            subjects.append(claim)
        else:
            foreign.append(claim.subject_id)
    for before, claim in enumerate(subjects):
        try:
            await parts.erasures.erase(claim, reason, cause)
        except ArchiveUnavailable as error:
            message = f"{error}; the entity and {before} of its {len(subjects)} claims are erased"
            raise ArchiveUnavailable(message) from error
        advance(1)
    removed = await _removed(parts, subjects, advance)
    return ErasureDone(erased, removed, claims, foreign)


async def _removed(parts: Parts, claims: Sequence[Subject], advance: Advance) -> Removed:
    """Delete the documents of every claim; a failing one does not stop the others."""
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
