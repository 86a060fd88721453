"""An erasure on request: a claim with its documents, an entity with its claims, or one alone."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from service.archive.port import ArchiveUnavailable
from service.core.progress import Advance, Show
from service.ledger.decoding import Unread
from service.ledger.events import Cause
from service.privacy.documents import Removed
from service.privacy.erasure_subjects import EntityClaim, Subject
from service.privacy.erasures import Erased, KeysRemain
from service.privacy.reapply import Parts
from service.storage.port import StorageUnavailable


class ErasureDone(NamedTuple):
    """The outcome. `claims` are those of an entity, as they were before they were erased.

    Of these, `foreign` were left alone: no event of this service says that they are the entity's.
    `unread` are events that name the entity, or are in the streams of what was erased, and had no
    effect: another than this service wrote them, or nobody can read them. `unclaimed` objects of an
    entity are of no claim, and were left; None: storage could not be asked.
    """

    erased: Erased
    objects: Removed
    claims: list[EntityClaim]
    foreign: Sequence[str]
    unread: Sequence[Unread]
    unclaimed: int | None = 0


class DocumentsRemain(Exception):
    """Every key is destroyed, and storage failed; `str()` is its first fault.

    Documents of `left` claims, of `claims` in all, may still be there; and an entity's uploads
    without a claim.
    """

    def __init__(self, left: int, claims: int, fault: StorageUnavailable) -> None:
        super().__init__(str(fault))
        self.left = left
        self.claims = claims


async def erase_claim(parts: Parts, claim: Subject, reason: str, cause: Cause) -> ErasureDone:
    """Erase a claim, then remove its documents.

    Raises ArchiveUnavailable or KeysRemain when nothing was erased, DocumentsRemain when documents
    remain.
    """
    erased = await parts.erasures.erase(claim, reason, cause)
    removed = await _removed(parts, [claim], lambda _steps: None)
    return ErasureDone(erased, removed, [], [], erased.unread)


async def erase_alone(parts: Parts, subject: Subject, reason: str, cause: Cause) -> ErasureDone:
    """Erase a subject that has neither documents nor claims; raises as `Erasures.erase` does."""
    erased = await parts.erasures.erase(subject, reason, cause)
    return ErasureDone(erased, Removed(0, 0), [], [], erased.unread)


async def erase_entity(
    parts: Parts,
    entity: Subject,
    reason: str,
    cause: Cause,
    show: Show,
    *,
    with_claims: bool,
) -> ErasureDone:
    """Erase an entity; `with_claims` its claims too, each by an event of its own.

    `show` is called for the log, which is read first, and for the claims, of which each is three
    steps: how it began is read, its key is destroyed, its documents are deleted. All keys come
    before documents, since they do not depend on storage. Whatever else is stored of the entity
    comes last. Claims and links are read from the log; those that are made meanwhile, from read
    models, when the entity is erased, which waits for claims that are being created.

    Raises ArchiveUnavailable or KeysRemain, whose text says how much was erased, DocumentsRemain,
    and Unreadable where a later release wrote what may be of this entity.
    """
    named = await parts.subjects.named(entity, show)
    erased = await parts.erasures.erase(entity, reason, cause, named.links)
    unread = [*named.unread, *erased.unread]
    claims = await parts.subjects.claims_of(entity, named)
    removed, foreign = Removed(0, 0), list[str]()
    if with_claims:
        found = [Subject("claim", row.claim_id, row.stream_id) for row in claims]
        with show("erasing claims", 3 * len(found)) as advance:
            subjects = await parts.subjects.theirs(found, entity, advance)
            ours = set(subjects)
            foreign = [one.subject_id for one in found if one not in ours]
            advance(2 * len(foreign))
            for one in await _destroyed(parts, subjects, reason, cause, advance):
                unread += one.unread
            removed = await _removed(parts, subjects, advance)
        removed = await _removed_rest(parts, entity, removed, len(subjects))
    unclaimed = 0 if with_claims else await _unclaimed(parts, entity)
    in_order = sorted(set(unread), key=lambda one: one.append_id)
    return ErasureDone(erased, removed, claims, foreign, in_order, unclaimed)


async def _destroyed(
    parts: Parts, claims: Sequence[Subject], reason: str, cause: Cause, advance: Advance
) -> list[Erased]:
    """Destroy the key of every claim.

    Raises ArchiveUnavailable or KeysRemain, which say how many are erased.
    """
    done: list[Erased] = []
    for claim in claims:
        try:
            done.append(await parts.erasures.erase(claim, reason, cause))
        except ArchiveUnavailable as error:
            raise ArchiveUnavailable(_told(error, done, claims)) from error
        except KeysRemain as error:
            raise KeysRemain(_told(error, done, claims), error.count) from error
        advance(1)
    return done


def _told(error: Exception, done: Sequence[Erased], claims: Sequence[Subject]) -> str:
    return f"{error}; the entity and {len(done)} of its {len(claims)} claims are erased"


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


async def _removed_rest(parts: Parts, entity: Subject, removed: Removed, claims: int) -> Removed:
    """Delete what is left of an entity, whose `claims` have none left but what is in `removed`."""
    try:
        rest = await parts.documents.remove_rest(entity.subject_id)
    except StorageUnavailable as error:
        raise DocumentsRemain(0, claims, error) from error
    # What was replaced while its claim's were deleted may be among the rest.
    return Removed(removed.objects + rest.objects, max(removed.left, rest.left))


async def _unclaimed(parts: Parts, entity: Subject) -> int | None:
    """Return how many objects of an entity are of no claim, where storage can be asked."""
    with suppress(StorageUnavailable):
        return await parts.documents.unclaimed(entity.subject_id)
    return None
