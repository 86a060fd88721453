"""What may happen to a claim. Pure: state in, events out, or a refusal."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from service.claims.wire import PARTNER_INVOICE_IDS_BYTES_MAX, ClaimRequest
from service.core.errors import Refusal, invalid
from service.facts import replays
from service.facts.access import Access
from service.facts.caller import Caller
from service.facts.claims import (
    STAGES,
    Claim,
    ClaimCreated,
    ClaimStageChanged,
    Document,
    DocumentsAttached,
    FirstMessagePosted,
    claim_stream,
)
from service.facts.connections import connection_stream
from service.facts.replays import Mismatch
from service.ledger.encryption import DataKey
from service.ledger.events import Event
from service.ledger.writing import Guard

_ELSEWHERE = {"message", "document_refs"}
"""Fields of the request that are facts of their own. Of the others, those that `ClaimCreated` has
under the same name are in the clear; the rest is its `details`."""


class Upload(NamedTuple):
    """An upload that a claim references, as found in storage, and the partner's filename."""

    document: Document
    filename: str


class CreateClaim(NamedTuple):
    """A request to create a claim, and the streams that it decides on; `size` in bytes."""

    caller: Caller
    request: ClaimRequest
    key: UUID
    connection: UUID
    uploads: Sequence[Upload] = ()
    size: int = 0

    def guard(self, access: Access) -> Guard:
        """Return what the decision rests on: nothing may happen to the connection meanwhile."""
        return Guard(self.connection, access.version)


class Created(NamedTuple):
    """The outcome of a request: `matches` is whether a replay has the same body, else None."""

    claim_id: str
    message_id: str | None
    document_ids: list[str]
    already_existed: bool
    matches: bool | None


def stream_of(caller: Caller, entity_id: str, partner_claim_id: str) -> UUID:
    """Return the stream of a caller's claim, derived from its natural key."""
    return claim_stream(caller.mode, caller.epoch, caller.partner_id, entity_id, partner_claim_id)


def create_claim(
    caller: Caller, request: ClaimRequest, uploads: Sequence[Upload] = (), size: int = 0
) -> CreateClaim:
    """Return the command, its streams derived from the natural key (decision 1)."""
    return CreateClaim(
        caller,
        request,
        stream_of(caller, request.entity_id, request.partner_claim_id),
        connection_stream(caller.mode, caller.partner_id, request.entity_id),
        uploads,
        size,
    )


def create(
    command: CreateClaim, access: Access, key: DataKey, claim_id: str, message_id: str
) -> tuple[list[Event], Created]:
    """Create a claim, and its first message if there is one (contract 2.5, 2.6).

    Refuses with `validation_failed` references of too many bytes. Replays are not refused for it:
    their claims may be older than the limit.
    """
    access.check_write()
    references = command.request.partner_invoice_ids or ()
    if sum(len(one.encode()) for one in references) > PARTNER_INVOICE_IDS_BYTES_MAX:
        fault = f"must have at most {PARTNER_INVOICE_IDS_BYTES_MAX} bytes together"
        raise invalid("partner_invoice_ids", fault)
    caller, request = command.caller, command.request
    fields: dict[str, Any] = {
        name: value
        for name, value in msgspec.to_builtins(request).items()
        if name not in _ELSEWHERE
    }
    version = replays.request_version(type(request))
    created = ClaimCreated(
        claim_id=claim_id,
        partner_id=caller.partner_id,
        fingerprint=replays.fingerprint(key, request, version),
        fingerprint_version=version,
        **{name: fields.pop(name) for name in ClaimCreated.__struct_fields__ if name in fields},
        details=fields,
    )
    events: list[Event] = [created]
    documents = [upload.document for upload in command.uploads]
    if documents:
        filenames = [upload.filename for upload in command.uploads]
        events.append(
            DocumentsAttached(claim_id=claim_id, documents=documents, filenames=filenames)
        )
    text = request.message or None
    has_message = bool(text or documents)
    if has_message:
        events.append(
            FirstMessagePosted(
                claim_id=claim_id,
                message_id=message_id,
                partner_id=caller.partner_id,
                entity_id=request.entity_id,
                text=text,
            )
        )
    ids = [document.document_id for document in documents]
    return events, Created(claim_id, message_id if has_message else None, ids, False, None)


def replay(
    command: CreateClaim, access: Access, made: ClaimCreated, key: DataKey | None
) -> tuple[Mismatch | None, Created]:
    """Return the outcome of a replay, and the mismatch to record if its body differs.

    A partner that the entity has disconnected may not write, and so may not replay (readings).
    """
    access.check_write()
    compared = replays.compare(command.caller.mode, made, command.request, key)
    return compared.mismatch, Created(made.claim_id, None, [], True, compared.matches)


def move(claim: Claim, stage: str, seen: str | None = None) -> list[Event]:
    """Move a claim to a listed stage; moving it to its present stage changes nothing.

    Refused with `form_outdated` where it is not at the stage `seen`, if one is given.
    """
    if stage not in STAGES:
        raise invalid("stage", f"expected one of {', '.join(STAGES)}")
    if not claim.claim_id:
        raise Refusal("claim_not_found")
    if stage == claim.stage:
        return []
    if seen not in {None, claim.stage}:
        raise Refusal("form_outdated", f"The claim is at the stage {claim.stage} by now.")
    return [ClaimStageChanged(claim_id=claim.claim_id, stage=stage)]
