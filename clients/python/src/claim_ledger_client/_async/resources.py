"""The operations, by the resource that they are about."""

from collections.abc import AsyncIterator

import msgspec

from claim_ledger_client._async.calls import Calls
from claim_ledger_client._async.uploads import File, upload
from claim_ledger_client.models import (
    ClaimDetail,
    ClaimList,
    ClaimListItem,
    ClaimRequest,
    ClaimResponse,
    CloudEvent,
    ConnectRequest,
    ConnectResponse,
    DocumentRef,
    EventList,
    OnboardingRequest,
    OnboardingResponse,
    UploadRequest,
    UploadResponse,
)
from claim_ledger_client.operations import (
    CREATE_CLAIM,
    GET_CLAIM,
    LIST_CLAIMS,
    LIST_EVENTS,
    MINT_UPLOAD_URL,
    REQUEST_CONNECTION,
    START_ONBOARDING,
)


class Resource(msgspec.Struct, frozen=True):
    """Operations that share their calls."""

    _calls: Calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Onboardings(Resource, frozen=True):
    """Businesses that are new to the service."""

    async def create(self, onboarding: OnboardingRequest) -> OnboardingResponse:
        """Onboard a business; repeat it as often as you like."""
        return await self._calls.call(START_ONBOARDING, OnboardingResponse, body=onboarding)


class ConnectRequests(Resource, frozen=True):
    """Businesses that already use the service."""

    async def create(self, request: ConnectRequest) -> ConnectResponse:
        """Return a fresh link to deliver.

        Each call mints one. It is retried only where none can have been minted, so after a
        `ConnectionLostError` or an `UnreadableAnswerError` it is up to you to ask for another.
        """
        return await self._calls.call(REQUEST_CONNECTION, ConnectResponse, body=request)


class Documents(Resource, frozen=True):
    """Files for claims to refer to."""

    async def mint_upload_url(self, request: UploadRequest) -> UploadResponse:
        """Return a URL that takes one file; `upload` does all of it."""
        return await self._calls.call(MINT_UPLOAD_URL, UploadResponse, body=request)

    async def upload(self, request: UploadRequest, file: File) -> DocumentRef:
        """Upload a file (its bytes, or its path); return the reference for `document_refs`.

        Mints another URL where the storage refuses one with 403: it has been used, and the answer
        was lost. Raises UploadRefusedError for what storage refuses otherwise, such as a URL that
        has expired (400 `ExpiredToken`).
        """
        return await upload(self._calls, request, file)


class Claims(Resource, frozen=True):
    """Claims that you created."""

    async def create(self, claim: ClaimRequest) -> ClaimResponse:
        """Create a claim, once for each `partner_claim_id` of an entity.

        `already_existed` is also true where an attempt was retried whose answer was lost.
        """
        return await self._calls.call(CREATE_CLAIM, ClaimResponse, body=claim)

    async def get(self, claim_id: str) -> ClaimDetail:
        """Return one claim with its stages, its documents and its invoices' total."""
        return await self._calls.call(GET_CLAIM, ClaimDetail, path={"claim_id": claim_id})

    async def page(
        self,
        entity_id: str,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        partner_user_id: str | None = None,
    ) -> ClaimList:
        """Return one page of an entity's claims."""
        query = {
            "entity_id": entity_id,
            "limit": limit,
            "page_token": page_token,
            "partner_user_id": partner_user_id,
        }
        return await self._calls.call(LIST_CLAIMS, ClaimList, query=query)

    async def list(
        self, entity_id: str, *, limit: int | None = None, partner_user_id: str | None = None
    ) -> AsyncIterator[ClaimListItem]:
        """Yield an entity's claims, newest first, of as many pages as there are.

        `limit` is the size of a page.
        """
        token: str | None = None
        while True:
            page = await self.page(
                entity_id, limit=limit, page_token=token, partner_user_id=partner_user_id
            )
            for claim in page.claims:
                yield claim
            token = page.next_page_token
            if token is None:
                return


class Events(Resource, frozen=True):
    """What happened to your claims, onboardings and connections."""

    async def page(self, after: str | None = None, *, limit: int | None = None) -> EventList:
        """Return the events after a cursor, from the first one without."""
        query = {"after": after, "limit": limit}
        return await self._calls.call(LIST_EVENTS, EventList, query=query)

    async def pages(
        self, after: str | None = None, *, limit: int | None = None
    ) -> AsyncIterator[EventList]:
        """Yield pages of events until there are no more now.

        Keep each page's `next_cursor` once you have dealt with its events: `after` goes on there.
        """
        while True:
            page = await self.page(after, limit=limit)
            if not page.events:
                return
            yield page
            after = page.next_cursor

    async def list(
        self, after: str | None = None, *, limit: int | None = None
    ) -> AsyncIterator[CloudEvent]:
        """Yield events, oldest first, until there are no more now."""
        async for page in self.pages(after, limit=limit):
            for event in page.events:
                yield event
