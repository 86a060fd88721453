"""Creating and moving claims: a verb each."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Any, Protocol
from uuid import UUID

from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import access_from
from service.claims import decisions
from service.claims.decisions import CreateClaim, Created, Upload
from service.claims.wire import ClaimRequest
from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId
from service.facts.access import Access
from service.facts.caller import Caller
from service.facts.claims import Claim, ClaimCreated, fold
from service.ledger.batching import Batcher
from service.ledger.binding import Binding, UnboundEvent
from service.ledger.database import Row
from service.ledger.events import Cause
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.ledger.transaction import AppendConflict, PublicIdTaken, StreamLocked, Transaction
from service.ledger.writing import Append, Decided, Outcome, Proposal
from service.sandbox.triggers import refuse_trigger

BATCH_MAX = 32
"""Claims created by one statement."""
CONCURRENCY = 2
"""Batches of one process at once: while one commits, another is filled."""

_SQL = queries("service.claims")

Step = Decided[Created | Refusal | UnboundEvent]
"""What one command of a batch comes to."""


class DocumentCheck(Protocol):
    """Finds the uploads that a claim references."""

    async def check(self, caller: Caller, request: ClaimRequest) -> Sequence[Upload]:
        """Return the uploads as they are in storage, or refuse (contract 4.4)."""
        ...


@dataclass
class ClaimCommands:
    """Writes claims to one ledger."""

    ledger: Ledger
    claims: ClaimListReader
    documents: DocumentCheck
    clock: Clock
    new_id: NewId
    make_batcher: InitVar[type[Batcher[Any, Any]]] = Batcher

    def __post_init__(self, make_batcher: type[Batcher[Any, Any]]) -> None:
        """Collect the claims that are created at the same time in batches."""
        deadline = self.ledger.database.writes.deadline_seconds
        self._batcher: Batcher[CreateClaim, Created] = make_batcher(
            self._create_all,
            name="write",
            batch_max=BATCH_MAX,
            concurrency=CONCURRENCY,
            deadline=deadline,
        )

    async def create(self, caller: Caller, request: ClaimRequest, size: int = 0) -> Created:
        """Create a claim, or return what the first call created (contract 4.4).

        `size` is that of the request's body, by which large claims keep out of the small ones' way.

        Refuses with `entity_not_found`, `entity_not_owned`, `partner_disconnected`, or
        `claim_conflict` when the drawn claim id was taken.
        """
        uploads = await self.documents.check(caller, request) if request.document_refs else ()
        try:
            command = decisions.create_claim(caller, request, uploads, size)
            return await self._batcher.submit(command)
        except PublicIdTaken as error:
            raise Refusal("claim_conflict") from error

    async def move(self, claim_id: str, stage: str, cause: Cause, seen: str | None = None) -> Claim:
        """Move a claim to another stage and return it.

        Refuses with `form_outdated` where somebody has moved it from the stage `seen`.
        """
        stream = await self._stream(claim_id)

        async def attempt(transaction: Transaction) -> Claim:
            facts = [recorded.event for recorded in await transaction.read(stream)]
            claim = _own(claim_id, fold(facts))
            events = decisions.move(claim, stage, seen)
            if events:
                await transaction.append(Append(stream, claim.version, events, cause))
            return fold([*facts, *events])

        return await self.ledger.decide(attempt)

    async def show(self, claim_id: str) -> Claim:
        """Return a claim folded from its stream; refuses with `claim_not_found`."""
        stream = await self._stream(claim_id)
        async with self.ledger.transaction() as transaction:
            facts = [recorded.event for recorded in await transaction.read(stream)]
            return _own(claim_id, fold(facts))

    async def _stream(self, claim_id: str) -> UUID:
        row = await self.claims.by_id(claim_id)
        if row is None:
            raise Refusal("claim_not_found")
        return row["stream_id"]

    async def _create_all(self, commands: Sequence[CreateClaim]) -> Sequence[Created | Exception]:
        """Read what the commands decide on, decide, and write what they have decided.

        Nothing is locked while they decide: the write looks again under its locks. A replay only
        reads. Its connection may end while it does, and then the replay came first: whoever has
        been told of a disconnection is refused, since the read begins later.
        """
        binding = await self.ledger.binding()
        rows = await self.ledger.database.reads.fetch(
            _SQL.context,
            [command.request.entity_id for command in commands],
            [command.connection for command in commands],
            [command.key for command in commands],
            binding.retired,
        )
        steps = [
            self._step(command, row, binding) for command, row in zip(commands, rows, strict=True)
        ]
        proposals = [step.proposal for step in steps if step.proposal is not None]
        written = iter(await self.ledger.write(proposals) if proposals else ())
        return [
            step.result if step.proposal is None else _settled(step, next(written))
            for step in steps
        ]

    def _step(self, command: CreateClaim, row: Row, binding: Binding) -> Step:
        try:
            access = access_from(row, command.connection, binding)
            if row["made"] is None:
                return self._create(command, access)
            binding.check_first(command.key, ClaimCreated.__name__, row)
            return self._replay(command, row, access)
        except (Refusal, UnboundEvent) as error:
            return Step(error)

    def _create(self, command: CreateClaim, access: Access) -> Step:
        access.check_write()
        refuse_trigger(command.caller.mode, "create_claim", command.request.partner_claim_id)
        now = self.clock()
        claim_id, message_id = self.new_id("clm", now), self.new_id("msg", now)
        key = self.ledger.master_keys.new_data_key(command.key)
        events, outcome = decisions.create(command, access, key, claim_id, message_id)
        cause = command.caller.cause
        append = Append(command.key, 0, events, cause, key, new_key=True, public_ids=[claim_id])
        uploads = [upload.document.storage_path for upload in command.uploads]
        return Step(outcome, Proposal([append], [command.guard(access)], uploads))

    def _replay(self, command: CreateClaim, row: Row, access: Access) -> Step:
        made, _ = self.ledger.codec.decode(command.key, 1, ClaimCreated.__name__, row["made"])
        if not isinstance(made, ClaimCreated):
            raise TypeError(f"{type(made).__name__} does not begin a claim")
        key = None
        if row["key_id"] is not None:
            key = self.ledger.master_keys.open_data_key(
                row["key_id"], row["wrapped"], row["master_key_id"]
            )
        mismatch, outcome = decisions.replay(command, access, made, key)
        if mismatch is None:
            return Step(outcome)
        append = Append(mismatch.stream_id, 0, [mismatch.event], command.caller.cause)
        return Step(outcome, Proposal([append], [command.guard(access)]), once=True)


def _own(claim_id: str, claim: Claim) -> Claim:
    """Return the claim if it is the one that was asked for: a read model named its stream."""
    if claim.claim_id != claim_id:
        raise Refusal(
            "claim_not_found",
            "The read model claim_list is wrong about this claim: `projections verify` shows more.",
        )
    return claim


def _settled(step: Step, outcome: Outcome) -> Created | Exception:
    """Return a command's result, given what became of its proposal."""
    if step.is_settled_by(outcome):
        return step.result
    match outcome:
        case "locked":
            return StreamLocked(outcome)
        case "upload_gone":
            return Refusal("document_not_uploaded")
        case _:
            return AppendConflict(outcome)
