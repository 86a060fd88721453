"""Requesting a time stamp (RFC 3161) from another party on a ledger's newest checkpoint."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from service.archive.port import Archive, ArchiveUnavailable
from service.evidence.checkpoints.signatures import SIGNATURE_BYTES_MAX, add_signature
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.countersigners import Countersigners
from service.evidence.countersigning.newest import newest
from service.evidence.countersigning.pace import Pace
from service.evidence.countersigning.witness_client import Declined, Post
from service.evidence.note import NoteInvalid, NoteSignature
from service.evidence.time_stamp import TimeAuthority
from service.http.posting import Unanswered, post

_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"
_OK: Final = 200

log = structlog.get_logger()


class TimeStamping:
    """Requests time stamps from one authority for one ledger; several workers may do so."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        archive: Archive | None,
        url: str,
        authority: TimeAuthority,
        *,
        post: Post = post,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`archive` gets the tokens."""
        self._checkpoints = checkpoints
        self._archive = archive
        self._url = url
        self._authority = authority
        self._signers = Countersigners(authorities=[authority])
        self._post = post
        self._pace = Pace(monotonic)

    async def step(self) -> int | None:
        """Return 1 if the authority has stamped; None: it is not time, which a clock tells."""
        if not self._pace.is_due():
            return None
        try:
            found = await newest(self._checkpoints, self._signers)
            if found is None or found.signed:
                return 0
            text = "\n".join((*found.checkpoint.lines, ""))
            signature = NoteSignature(*self._authority.which, await self._token(text))
            database = self._checkpoints.ledger.database
            await add_signature(database, self._archive, found.checkpoint, signature)
        except (ArchiveUnavailable, Declined, NoteInvalid, Unanswered) as error:
            name = type(error).__name__
            log.warning("no time stamp", ledger=self._checkpoints.ledger.name, error_type=name)
            self._pace.failed()
            return 0
        self._pace.succeeded()
        return 1

    async def _token(self, text: str) -> bytes:
        """Return a token of a note's text, verified; raises Declined, NoteInvalid, Unanswered."""
        from rfc3161_client import (
            HashAlgorithm,
            TimestampRequestBuilder,
            decode_timestamp_response,
        )

        builder = TimestampRequestBuilder().data(text.encode())
        request = builder.hash_algorithm(HashAlgorithm.SHA256).build()
        answer = await self._post(self._url, _QUERY, request.as_bytes(), SIGNATURE_BYTES_MAX)
        if answer.status != _OK or answer.kind != _REPLY:
            raise Declined(f"it answered {answer.status}")
        try:
            reply = decode_timestamp_response(answer.body)
            token, nonce = reply.time_stamp_token(), reply.tst_info.nonce
        except ValueError as error:
            raise Declined("it answered without a token") from error
        if nonce != request.nonce:
            raise Declined("it answered another request")
        self._authority.anchor.stamped_at(text, token)
        return token
