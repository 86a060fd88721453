"""An erasure on request: a claim with its documents, an entity with its claims, or one alone."""

from collections.abc import Sequence
from typing import NamedTuple

from service.archive.port import ArchiveUnavailable
from service.core.progress import Advance, Show
from service.ledger.decoding import Unread
from service.ledger.events import Cause
from service.privacy.documents import Removed
from service.privacy.erasures import EntityClaim, Erased, KeysRemain, Subject
from service.privacy.reapply import Parts
from service.storage.port import StorageUnavailable


class ErasureDone(NamedTuple):
    """The outcome. `claims` are those of an entity, as they were before they were erased.

    Of these, `foreign` were left alone: no event of this service says that they are the entity's.
    `unread` are events that name the entity, or are in the streams of what was erased, and had no
    effect: another than this service wrote them, or nobody can read them.
    """

    erased: Erased
    objects: Removed
    claims: list[EntityClaim]
    foreign: Sequence[str]
    unread: Sequence[Unread]


class DocumentsRemain(Exception):
    """Every key is destroyed, and storage failed; `str()` is its first fault.

    Documents of `left` claims, of `claims` in all, may still be there.
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

    `show` is called for the log, which is read first, and for the claims, of which each is two
    steps: its key is destroyed, its documents are deleted. All keys come first, since they do not
    depend on storage. Claims and links are read from the log; those that are made meanwhile, from
    read models, when the entity is erased, which waits for claims that are being created.

    Raises ArchiveUnavailable or KeysRemain, whose text says how much was erased, DocumentsRemain,
    and Unreadable where a later release wrote what may be of this entity.
    """
    named = await parts.erasures.named(entity, show)
    erased = await parts.erasures.erase(entity, reason, cause, named.links)
    unread = [*named.unread, *erased.unread]
    claims = await parts.erasures.claims_of(entity, named)
    removed, foreign = Removed(0, 0), list[str]()
    if with_claims:
        subjects = list[Subject]()
        for row in claims:
            claim = Subject("claim", row.claim_id, row.stream_id)
            if await parts.erasures.is_claim_of(claim, entity):
                subjects.append(claim)
            else:
                foreign.append(claim.subject_id)
        with show("erasing claims", 2 * len(subjects)) as advance:
            for one in await _destroyed(parts, subjects, reason, cause, advance):
                unread += one.unread
            removed = await _removed(parts, subjects, advance)
    in_order = sorted(set(unread), key=lambda one: one.append_id)
    return ErasureDone(erased, removed, claims, foreign, in_order)


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
