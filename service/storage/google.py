"""Access a bucket through google-cloud-storage, in the cloud or in the local store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeVar

from google.api_core.exceptions import GoogleAPIError, NotFound, PreconditionFailed
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.cloud.storage import Blob, Client
from requests import RequestException, Session
from urllib3.exceptions import HTTPError

from service.storage.deadline import AbortableAdapter, CallFailed, OneTry
from service.storage.port import StorageUnavailable, StoredObject
from service.storage.shares import Shares

DEADLINE_SECONDS: Final = 3.0
"""For checking a claim's documents, all pages together."""
PAGE_SECONDS_MAX: Final = 30.0
"""For a page of an audit or a sweep, which no request waits for."""
THREADS: Final = 16
THREADS_OF_ONE: Final = THREADS // 4
"""Of them one owner's listings take as many: those of somebody with many, or with large ones, wait
for each other."""
_ONE_TRY: Final[dict[str, Any]] = {"timeout": (1.5, 3.0), "retry": None}
"""Seconds to connect and for each read; the deadline bounds them all together. The client's own
retries would outlast every deadline."""
_FIELDS: Final = "items(name,size,contentType,generation,crc32c),nextPageToken"
_FAULTS: Final = (
    CallFailed,
    GoogleAPIError,
    GoogleAuthError,
    RequestException,
    HTTPError,  # urllib3's, which nobody wraps where bytes are read as they are stored
    OSError,
    ValueError,
    # A response of another shape than the client expects.
    AttributeError,
    KeyError,
    TypeError,
)

T = TypeVar("T")


class _Bounded:
    """A file to download to that takes no more than it was asked for: servers may ignore ranges."""

    def __init__(self, size: int) -> None:
        self.content = bytearray()
        self._size = size

    def write(self, more: bytes) -> int:
        """Keep what came; raises ValueError beyond the size."""
        self.content += more
        if self.is_over:
            raise ValueError("more bytes than were asked for")
        return len(more)

    @property
    def is_over(self) -> bool:
        """Whether more came than was asked for."""
        return len(self.content) > self._size


class _Channel(NamedTuple):
    """A client with connections of its own, used by one call at a time."""

    client: Client
    adapter: AbortableAdapter


@dataclass
class GoogleObjectStore:
    """One bucket, under deadlines; every failure is StorageUnavailable.

    `credentials` may list and read; `endpoint` is the local store's address.
    """

    credentials: Credentials
    bucket: str
    endpoint: str | None = field(default=None, kw_only=True)
    deadline_seconds: float = field(default=DEADLINE_SECONDS, kw_only=True)

    def __post_init__(self) -> None:
        """Connect to nothing yet."""
        self._idle: list[_Channel] = []
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="storage")
        self._shares = Shares(THREADS_OF_ONE)

    async def under(self, prefix: str, owner: str = "") -> Mapping[str, StoredObject]:
        """Return all objects under a prefix by one listing, paged beyond 1,000."""

        def listed(client: Client) -> dict[str, StoredObject]:
            return {one.name: one for one in map(_stored, self._blobs(client, prefix=prefix))}

        return await self._ask(listed, self.deadline_seconds, owner)

    async def each(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Yield all objects under a prefix, a page at a time."""
        token: str | None = None
        while True:

            def page(
                client: Client, token: str | None = token
            ) -> tuple[list[StoredObject], str | None]:
                found = self._blobs(client, prefix=prefix, page_token=token)
                return [_stored(one) for one in next(found.pages, ())], found.next_page_token

            stored, token = await self._ask(page)
            for one in stored:
                yield one
            if token is None:
                return

    async def part(self, name: str, generation: int, start: int, size: int) -> bytes | None:
        """Return at most `size` bytes of one generation of an object; None where it is gone.

        They come as they are stored: what was uploaded compressed is not unpacked.
        """
        unchecked: Any = None  # a checksum is of all of an object; the stubs demand one

        def read(client: Client) -> bytes | None:
            blob = client.bucket(self.bucket).blob(name, generation=generation)
            sink, end = _Bounded(size), start + size - 1
            try:
                blob.download_to_file(
                    sink, start=start, end=end, raw_download=True, checksum=unchecked, **_ONE_TRY
                )
            except NotFound:
                self._demand_bucket(client)
                return None
            return bytes(sink.content)

        return await self._ask(read)

    async def delete(self, name: str, generation: int) -> bool:
        """Delete an object unless it has changed; return whether it is gone."""

        def deleted(client: Client) -> bool:
            try:
                with suppress(NotFound):
                    self._blob(client, name).delete(if_generation_match=generation, **_ONE_TRY)
            except PreconditionFailed:
                return False
            return True

        return await self._ask(deleted)

    async def put_new(self, name: str, content: bytes) -> bool:
        """Upload an object unless one of that name exists; return whether it was uploaded."""

        def put(client: Client) -> bool:
            upload = self._blob(client, name).upload_from_string
            try:
                upload(content, "application/octet-stream", if_generation_match=0, **_ONE_TRY)
            except PreconditionFailed:
                return False
            return True

        return await self._ask(put)

    async def replace(self, name: str, text: bytes, known: bytes | None) -> bool:
        """Upload a text over `known`, None: over nothing; return whether that was there.

        No cache keeps it where it is public.
        """

        def put(client: Client) -> bool:
            there, generation = client.bucket(self.bucket).get_blob(name, **_ONE_TRY), 0
            blob = self._blob(client, name)
            blob.cache_control = "no-store"
            try:
                if there is not None:
                    generation = there.generation
                    if known is None or there.size != len(known):
                        return False
                    content = there.download_as_bytes(if_generation_match=generation, **_ONE_TRY)
                    if content != known:
                        return False
                elif known is not None:
                    return False
                blob.upload_from_string(
                    text, "text/plain; charset=utf-8", if_generation_match=generation, **_ONE_TRY
                )
            except PreconditionFailed:
                return False
            return True

        return await self._ask(put)

    async def read(self, name: str, bytes_max: int) -> bytes | None:
        """Return an object's bytes, or None where there is none; of a larger one, some more."""

        def read(client: Client) -> bytes | None:
            sink = _Bounded(bytes_max)
            try:
                self._blob(client, name).download_to_file(sink, **_ONE_TRY)
                return bytes(sink.content)
            except ValueError:
                if not sink.is_over:
                    raise
                return bytes(sink.content)
            except NotFound:
                self._demand_bucket(client)
                return None

        return await self._ask(read)

    async def names(self, prefix: str, start: str | None) -> list[str]:
        """Return the names under a prefix, in order, from `start` on."""
        return await self._ask(
            lambda client: [
                one.name for one in self._blobs(client, prefix=prefix, start_offset=start)
            ]
        )

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders directly under a prefix, each with its trailing slash."""

        def listed(client: Client) -> set[str]:
            # The stubs do not know of prefixes.
            found: Any = client.list_blobs(self.bucket, prefix=prefix, delimiter="/", **_ONE_TRY)
            for _ in found.pages:
                pass  # each adds to the prefixes
            return found.prefixes

        return sorted(await self._ask(listed))

    async def granted(self, permissions: Sequence[str]) -> set[str]:
        """Return which of the permissions the credentials have on the bucket."""
        wanted = list(permissions)
        return await self._ask(
            lambda client: set(client.bucket(self.bucket).test_iam_permissions(wanted, **_ONE_TRY))
        )

    async def cors(self) -> list[dict[str, Any]]:
        """Return the bucket's CORS rules; needs `storage.buckets.get`."""
        return await self._ask(lambda client: list(client.get_bucket(self.bucket, **_ONE_TRY).cors))

    async def deletion(self) -> tuple[timedelta, bool]:
        """Return for how long the bucket keeps what was deleted, and whether it keeps versions.

        Needs `storage.buckets.get`.
        """

        def looked(client: Client) -> tuple[timedelta, bool]:
            bucket = client.get_bucket(self.bucket, **_ONE_TRY)
            seconds: Any = bucket.soft_delete_policy.retention_duration_seconds
            return timedelta(seconds=int(seconds or 0)), bool(bucket.versioning_enabled)

        return await self._ask(looked)

    def close(self) -> None:
        """End the threads and the connections."""
        self._threads.shutdown(cancel_futures=True)
        for channel in self._idle:
            channel.adapter.connections.abort()
            channel.adapter.close()
        self._idle.clear()

    async def _ask(
        self,
        call: Callable[[Client], T],
        deadline_seconds: float = PAGE_SECONDS_MAX,
        owner: str | None = None,
    ) -> T:
        """Run a call under one deadline, once its owner's share, if any, has a place."""
        if owner is None:
            within = asyncio.timeout(deadline_seconds)
        else:
            within = self._shares.place(owner, deadline_seconds)
        try:
            async with within:
                return await self._run(call)
        except _FAULTS as error:
            raise StorageUnavailable(type(error).__name__) from error

    async def _run(self, call: Callable[[Client], T]) -> T:
        """Run a call in a thread. Cancelled, its connections are aborted, which ends it."""
        channel = self._idle.pop() if self._idle else self._new_channel()
        running = self._threads.submit(call, channel.client)
        done = False
        try:
            answer = await asyncio.wrap_future(running)
            done = True
        finally:
            if done:
                channel.adapter.connections.tidy()
                self._idle.append(channel)
            else:
                channel.adapter.connections.abort()
                # Once the thread has ended, which is soon; nobody waits for it.
                running.add_done_callback(lambda _: channel.adapter.close())
        return answer

    def _new_channel(self) -> _Channel:
        adapter = AbortableAdapter()
        signing_in = Session()  # fetches tokens on connections that can be aborted, too
        signing_in.mount("https://", adapter)
        signing_in.mount("http://", adapter)  # the metadata server's
        session = AuthorizedSession(self.credentials, auth_request=OneTry(signing_in))
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        options = {"api_endpoint": self.endpoint} if self.endpoint else None
        client = Client(
            project="none", credentials=self.credentials, _http=session, client_options=options
        )
        # Otherwise it asks for the bucket's location, for tracing, in a thread of its own.
        vars(client)["_bucket_metadata_cache"] = None
        return _Channel(client, adapter)

    def _demand_bucket(self, client: Client) -> None:
        """Raise for a missing bucket: the error is the same as for an object of an empty one."""
        next(client.list_blobs(self.bucket, max_results=1, **_ONE_TRY).pages, None)

    def _blob(self, client: Client, name: str) -> Blob:
        return client.bucket(self.bucket).blob(name)

    def _blobs(self, client: Client, **which: str | None) -> Any:  # noqa: ANN401 - untyped
        return client.list_blobs(self.bucket, fields=_FIELDS, **which, **_ONE_TRY)


def _stored(blob: Any) -> StoredObject:  # noqa: ANN401 - the client's Blob is untyped
    return StoredObject(
        blob.name, blob.size or 0, blob.content_type or "", blob.generation or 0, blob.crc32c or ""
    )
