"""Minting upload URLs, and checking the uploads that a claim refers to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from projections.connections.reader import ConnectionsReader, access_from
from service.claims.decisions import Upload, stream_of
from service.claims.wire import ClaimRequest
from service.core.clock import Clock
from service.core.errors import Refusal, invalid
from service.core.ids import NewId
from service.documents import decisions, paths
from service.documents.wire import UploadRequest
from service.facts.caller import Caller
from service.facts.connections import connection_stream
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.sandbox.triggers import refuse_trigger
from service.storage.port import ShareFull, SignedUpload, Storage, StorageUnavailable

RETRY_AFTER_SECONDS = 2

_SQL = queries("service.documents")

log = structlog.get_logger()


@dataclass(slots=True)
class StorageFailures:
    """Reports storage failures to the metrics, if any are kept."""

    on_failure: Callable[[], None] = lambda: None


@dataclass(slots=True)
class DocumentCommands:
    """Documents of one mode: its ledger's table of uploads, its bucket."""

    ledger: Ledger
    access: ConnectionsReader
    secrets: ServiceKeyStore
    storage: Storage
    clock: Clock
    new_id: NewId
    failures: StorageFailures

    async def mint(self, caller: Caller, request: UploadRequest) -> tuple[str, SignedUpload]:
        """Issue a path and a signed URL for one upload (contract 4.3).

        Refuses with `entity_not_found`, `entity_not_owned`, `partner_disconnected`,
        `validation_failed` where the claim has too many uploads, or `service_unavailable` when
        nothing can be signed.
        """
        access = await self.access.access(caller.partner_id, request.entity_id)
        access.check_write()
        refuse_trigger(caller.mode, "mint_upload_url", request.partner_claim_id)
        key = await self._claim_key(caller, request.partner_claim_id)
        now = self.clock()
        document_id = self.new_id("doc", now)
        path = paths.storage_path(request.entity_id, key, document_id, request.mime_type)
        try:
            upload = await self.storage.signer.sign(
                path, request.mime_type, request.max_bytes, caller.partner_id
            )
        except StorageUnavailable as error:
            raise self._refusal("service_unavailable", error) from error
        stream = stream_of(caller, request.entity_id, request.partner_claim_id)
        cap, most = request.max_bytes, paths.UPLOADS_OF_CLAIM_MAX
        if not await self.ledger.database.writes.fetch(
            _SQL.mint, path, stream, request.mime_type, cap, now, most
        ):
            raise invalid("partner_claim_id", f"this claim has {most:,} uploads, and takes no more")
        return path, upload

    async def check(self, caller: Caller, request: ClaimRequest) -> Sequence[Upload]:
        """Return the uploads that a claim references, as they are in storage now (contract 4.4).

        A replay is not checked, because it links nothing. Refuses with the codes of access,
        `document_path_invalid`, `document_not_uploaded`, `validation_failed`, or
        `document_verification_failed`.
        """
        asked = [
            (one.storage_path, one.mime_type, one.filename) for one in request.document_refs or []
        ]
        if not asked:
            return []
        stream = stream_of(caller, request.entity_id, request.partner_claim_id)
        connection = connection_stream(caller.mode, caller.partner_id, request.entity_id)
        binding = await self.ledger.binding()
        row = await self.ledger.database.reads.fetchrow(
            _SQL.context,
            connection,
            request.entity_id,
            stream,
            [path for path, _, _ in asked],
            binding.retired,
        )
        access_from(row, connection, binding).check_write()
        if row is None or row["made"]:
            return []
        key = await self._claim_key(caller, request.partner_claim_id)
        references = paths.references(asked, request.entity_id, key, set(row["minted"]))
        try:
            # Not all of the claim's: those that nobody names may be many, and each costs.
            prefix = paths.common_prefix(references)
            stored = await self.storage.store.under(prefix, caller.partner_id)
        except StorageUnavailable as error:
            raise self._refusal("document_verification_failed", error) from error
        return decisions.uploads(references, stored)

    async def _claim_key(self, caller: Caller, partner_claim_id: str) -> str:
        return (await self.secrets.get()).claim_key(caller.partner_id, partner_claim_id)

    def _refusal(self, code: str, error: StorageUnavailable) -> Refusal:
        """Report a failure of storage, unless it is none; return the refusal that it leads to."""
        counted_as = "storage_unavailable"
        if isinstance(error, ShareFull):  # a partner could raise the team's alert by it
            log.info("storage share full")
            counted_as = "busy"
        else:
            log.error(
                "document storage unavailable", error_type=type(error.__cause__ or error).__name__
            )
            self.failures.on_failure()
        return Refusal(code, retry_after_seconds=RETRY_AFTER_SECONDS, counted_as=counted_as)
