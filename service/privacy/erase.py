"""An erasure as a person asks for it: a claim with its documents, an entity and its claims."""

from collections.abc import Callable
from typing import NamedTuple

from service.ledger.database import Row
from service.ledger.events import Cause
from service.privacy.documents import Removed
from service.privacy.erasures import Erased, Subject
from service.privacy.reapply import Parts


class Done(NamedTuple):
    """What came of it. `claims` are those of an entity, as they were before theirs were erased."""

    erased: Erased
    objects: Removed
    claims: list[Row]


async def erase_claim(parts: Parts, claim: Subject, reason: str, cause: Cause) -> Done:
    """Erase a claim, then remove its documents.

    Raises PublicationUnavailable when nothing was erased, StorageUnavailable when documents remain.
    """
    erased = await parts.erasures.erase(claim, reason, cause)
    return Done(erased, await parts.documents.remove(claim), [])


async def erase_entity(
    parts: Parts,
    entity: Subject,
    reason: str,
    cause: Cause,
    each_claim: Callable[[list[Row]], Callable[[int], object]] | None,
) -> Done:
    """Erase an entity; with `each_claim` its claims too, each by an event of its own.

    `each_claim` is told of them and answers who hears of each. They are looked up afterwards: the
    erasure waits for those that were being created.
    """
    erased = await parts.erasures.erase(entity, reason, cause)
    claims = await parts.erasures.claims_of(entity)
    objects = left = 0
    if each_claim is not None:
        advance = each_claim(claims)
        for row in claims:
            claim = Subject("claim", row["claim_id"], row["stream_id"])
            done = await erase_claim(parts, claim, reason, cause)
            objects, left = objects + done.objects.objects, left + done.objects.left
            advance(1)
    return Done(erased, Removed(objects, left), claims)
