"""Creating and moving claims: a verb each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import access_from
from service.claims import decisions
from service.claims.decisions import CreateClaim, Created, Upload
from service.claims.wire import ClaimRequest
from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId
from service.facts.caller import Caller
from service.facts.claims import Claim, ClaimCreated, fold
from service.ledger.batching import Batcher
from service.ledger.database import Row
from service.ledger.events import Cause
from service.ledger.ledger import Append, Ledger, PublicIdTaken, Transaction
from service.ledger.sql import queries
from service.sandbox.triggers import refuse_trigger

BATCH_MAX = 32
"""Claims created in one transaction."""
CONCURRENCY = 2
"""Transactions of one process at once: while one commits, another is filled."""

_SQL = queries("service.claims")


class CommandStep(NamedTuple):
    """The result of one command of a batch; `once`: skip its append if the stream has begun."""

    outcome: Created | Refusal
    append: Append | None = None
    once: bool = False


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

    def __post_init__(self) -> None:
        """Collect the claims that are created at the same time in batches."""
        deadline = self.ledger.database.deadline_seconds
        self._batcher = Batcher[CreateClaim, Created](
            self._create_all, batch_max=BATCH_MAX, concurrency=CONCURRENCY, deadline=deadline
        )

    async def create(self, caller: Caller, request: ClaimRequest) -> Created:
        """Create a claim, or return what the first call created (contract 4.4).

        Refuses with `entity_not_found`, `entity_not_owned`, `partner_disconnected`, or
        `claim_conflict` when the drawn claim id was taken.
        """
        uploads = await self.documents.check(caller, request) if request.document_refs else ()
        try:
            return await self._batcher.submit(decisions.create_claim(caller, request, uploads))
        except PublicIdTaken as error:
            raise Refusal("claim_conflict") from error

    async def move(self, claim_id: str, stage: str, cause: Cause) -> Claim:
        """Move a claim to another stage and return it."""
        stream = await self._stream(claim_id)

        async def attempt(transaction: Transaction) -> Claim:
            facts = [recorded.event for recorded in await transaction.read(stream)]
            claim = fold(facts)
            events = decisions.move(claim, stage)
            if events:
                await transaction.append(Append(stream, claim.version, events, cause))
            return fold([*facts, *events])

        return await self.ledger.decide(attempt)

    async def show(self, claim_id: str) -> Claim:
        """Return a claim folded from its stream; refuses with `claim_not_found`."""
        stream = await self._stream(claim_id)
        async with self.ledger.transaction() as transaction:
            return fold(recorded.event for recorded in await transaction.read(stream))

    async def _stream(self, claim_id: str) -> UUID:
        row = await self.claims.by_id(claim_id)
        if row is None:
            raise Refusal("claim_not_found")
        return row["stream_id"]

    async def _create_all(self, commands: Sequence[CreateClaim]) -> Sequence[Created | Exception]:
        """Run commands in one transaction: lock, read, decide, append.

        Claims share the lock; a disconnection takes it exclusively. It is taken before an append_id
        is drawn, so no claim follows its EntityDisconnected in the log (decision 3).
        """
        async with self.ledger.transaction() as transaction:
            # A claim with documents also locks out a sweep of its uploads.
            await transaction.lock_shared(key for command in commands for key in command.locks)
            rows = await transaction.fetch(
                _SQL.context,
                [command.caller.partner_id for command in commands],
                [command.request.entity_id for command in commands],
                [command.key for command in commands],
            )
            swept = await self._swept(transaction, commands)
            steps = [
                CommandStep(Refusal("document_not_uploaded"))
                if command.key in swept and row["made"] is None
                else self._step(command, row)
                for command, row in zip(commands, rows, strict=True)
            ]
            appends = [
                step.append
                for step in steps
                if step.append is not None
                and not (step.once and await transaction.exists(step.append.stream_id))
            ]
            if appends:
                await transaction.append(*appends)
        return [step.outcome for step in steps]

    async def _swept(self, transaction: Transaction, commands: Sequence[CreateClaim]) -> set[UUID]:
        """Return the streams of commands whose uploads were swept since they were checked."""
        paths = {
            upload.document.storage_path: command.key
            for command in commands
            for upload in command.uploads
        }
        if not paths:
            return set()
        rows = await transaction.fetch(_SQL.uploads_present, list(paths))
        present = {row["storage_path"] for row in rows}
        return {key for path, key in paths.items() if path not in present}

    def _step(self, command: CreateClaim, row: Row) -> CommandStep:
        try:
            if row["made"] is None:
                return self._create(command, row)
            return self._replay(command, row)
        except Refusal as refusal:
            return CommandStep(refusal)

    def _create(self, command: CreateClaim, row: Row) -> CommandStep:
        access = access_from(row)
        access.check_write()
        refuse_trigger(command.caller.mode, "create_claim", command.request.partner_claim_id)
        now = self.clock()
        claim_id, message_id = self.new_id("clm", now), self.new_id("msg", now)
        key = self.ledger.master_keys.new_data_key(command.key)
        events, outcome = decisions.create(command, access, key, claim_id, message_id)
        cause = command.caller.cause
        append = Append(command.key, 0, events, cause, key, new_key=True, public_ids=[claim_id])
        return CommandStep(outcome, append)

    def _replay(self, command: CreateClaim, row: Row) -> CommandStep:
        access = access_from(row)
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
            return CommandStep(outcome)
        stream, event = mismatch
        return CommandStep(outcome, Append(stream, 0, [event], command.caller.cause), once=True)
