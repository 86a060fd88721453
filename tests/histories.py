"""Histories of HTTP operations on claims, and what no history of ours may show.

An operation has begun at `start` and was answered at `end`, by one monotonic clock; `end` is None
where there was no answer, and then it may have happened or not, or happen later. The same holds
for an answer of 5xx. A history is kept as JSON lines, an operation each.
"""

import json
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import httpx
import msgspec

Place = tuple[str, str]
"""A partner in one mode, and an entity: what a claim's key is unique within."""


class Operation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One operation; `claims` are the ids of a page, newest first. `page` is the page's token."""

    op: str
    partner: str
    entity: str
    start: float
    end: float | None = None
    status: int | None = None
    key: str | None = None
    claim_id: str | None = None
    already_existed: bool | None = None
    claims: list[str] | None = None
    page: str | None = None
    next_page: str | None = None

    @property
    def place(self) -> Place:
        """Whose operation it was, and for which entity."""
        return self.partner, self.entity

    @property
    def succeeded(self) -> bool:
        """Whether it was acknowledged."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Whether it surely changed nothing."""
        return self.status is not None and 400 <= self.status < 500

    def ended_before(self, moment: float) -> bool:
        """Whether it was answered before a moment."""
        return self.end is not None and self.end < moment


def to_lines(history: Iterable[Operation]) -> bytes:
    """Return a history as JSON lines."""
    return msgspec.json.Encoder().encode_lines(history)


def from_lines(lines: bytes) -> list[Operation]:
    """Return a history that was kept as JSON lines."""
    return msgspec.json.Decoder(Operation).decode_lines(lines)


def faults(history: Iterable[Operation]) -> list[str]:
    """Return what a history shows that must never be, in words; nothing for a right one."""
    places: defaultdict[Place, list[Operation]] = defaultdict(list)
    for one in history:
        places[one.place].append(one)
    return [fault for some in places.values() for fault in _faults_of_place(some)]


def _faults_of_place(history: Sequence[Operation]) -> Iterator[str]:
    made = [one for one in history if one.op == "create_claim" and one.succeeded]
    by_key: defaultdict[str | None, list[Operation]] = defaultdict(list)
    for one in made:
        by_key[one.key].append(one)
    for some in by_key.values():
        yield from _faults_of_key(some)
    keys = {one.claim_id: one.key for one in made}
    yield from (
        f"{one.claim_id} is the id of {keys[one.claim_id]} and of {one.key}"
        for one in made
        if keys[one.claim_id] != one.key
    )
    yield from _accepted_while_disconnected(history, made)
    acknowledged = _Acknowledged(made)
    for pages in _listings(history):
        yield from _faults_of_listing(pages, acknowledged)


def _faults_of_key(made: Sequence[Operation]) -> Iterator[str]:
    """Yield where a key has two claims: two answers of 201, two ids, or a replay before its 201."""
    key, news = made[0].key, [one for one in made if one.status == 201]
    if len(news) > 1:
        yield f"{key} was answered 201 {len(news)} times"
    if len(ids := {one.claim_id for one in made}) > 1:
        yield f"{key} has several ids: {sorted(map(str, ids))}"
    for one in made:
        if one.already_existed is not (one.status == 200):
            yield f"{key} was answered {one.status} with already_existed {one.already_existed}"
        if one.status == 200 and any(one.ended_before(new.start) for new in news):
            yield f"{key} was replayed before it was created"


def _accepted_while_disconnected(
    history: Sequence[Operation], made: Sequence[Operation]
) -> Iterator[str]:
    """Yield the claims accepted after an acknowledged disconnection, before any reconnection.

    A reconnection counts from its beginning, and wherever it may have come after the disconnection:
    it is not known to have ended before that began.
    """
    ends = [one for one in history if one.op == "disconnect" and one.succeeded]
    begins = [one for one in history if one.op == "connect" and not one.refused]
    for gone in ends:
        later = (one.start for one in begins if not one.ended_before(gone.start))
        back = min(later, default=inf)
        for one in made:
            if gone.ended_before(one.start) and one.end is not None and back >= one.end:
                yield f"{one.key} was accepted {one.start - (gone.end or 0):.3f} s after the end"


def _listings(history: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Yield each first page with the pages that followed it by their tokens."""
    pages: defaultdict[str | None, list[Operation]] = defaultdict(list)
    for one in sorted(history, key=lambda one: one.start):
        if one.op == "list_claims" and one.succeeded:
            pages[one.page].append(one)
    for first in pages[None]:
        listing = [first]
        while (token := listing[-1].next_page) is not None:
            last = listing[-1]
            later = (one for one in pages.get(token, ()) if last.ended_before(one.start))
            following = next(later, None)
            if following is None:
                break
            listing.append(following)
        yield listing


class _Acknowledged:
    """The acknowledged claims of a place, in the orders in which they are looked for.

    An hour has tens of thousands of claims and lists: not each of those is held against each claim.
    """

    def __init__(self, made: Sequence[Operation]) -> None:
        self.by_end = sorted(
            (one for one in made if one.end is not None), key=lambda one: one.end or 0
        )
        self.news = sorted((one for one in made if one.status == 201), key=lambda one: one.start)
        self.first_ends: dict[str | None, float] = {}
        for one in self.by_end:
            self.first_ends.setdefault(one.claim_id, one.end or 0)

    def before(self, moment: float) -> Sequence[Operation]:
        """Return what was acknowledged before a moment."""
        return self.by_end[: bisect_left(self.by_end, moment, key=lambda one: one.end or 0)]

    def begun_after(self, moment: float) -> Sequence[Operation]:
        """Return the new claims that began after a moment."""
        return self.news[bisect_right(self.news, moment, key=lambda one: one.start) :]


def _faults_of_listing(pages: Sequence[Operation], made: _Acknowledged) -> Iterator[str]:
    """Yield the claims that were acknowledged before a listing began, and that it lacks.

    A listing that was not read to its end may lack what is older than all that it has. What it has
    is older than a claim that began after the acknowledgement of that.
    """
    listed = [claim_id for page in pages for claim_id in page.claims or ()]
    found = set(listed)
    if len(listed) != len(found):
        yield "a claim was listed twice"
    begun = pages[0].start
    if pages[-1].next_page is None:
        expected = made.before(begun)
    else:
        oldest = min((made.first_ends.get(claim_id, inf) for claim_id in found), default=inf)
        expected = (one for one in made.begun_after(oldest) if one.ended_before(begun))
    for one in expected:
        if one.claim_id not in found:
            yield f"{one.key} was acknowledged, and a later list lacks {one.claim_id}"


class History:
    """Records operations; `keys` has an Authorization header for each place."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.keys: dict[Place, str] = {}

    @contextmanager
    def command(self, op: str, partner: str, entity: str) -> Iterator[None]:
        """Record a command that succeeds where it raises nothing; else nobody knows."""
        place = {"partner": partner, "entity": entity}
        operation = Operation(op=op, **place, start=time.monotonic())
        self.operations.append(operation)
        yield
        operation.end, operation.status = time.monotonic(), 200


class RecordingTransport(httpx.AsyncBaseTransport):
    """Records claims that are created and listed, and passes every request on."""

    def __init__(self, inner: httpx.AsyncBaseTransport, history: History) -> None:
        self._inner = inner
        self._history = history

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and record what it was and how it was answered."""
        operation = _operation(request)
        if operation is None:
            return await self._inner.handle_async_request(request)
        self._history.keys[operation.place] = request.headers["Authorization"]
        self._history.operations.append(operation)
        response = await self._inner.handle_async_request(request)
        await response.aread()
        operation.end, operation.status = time.monotonic(), response.status_code
        if operation.succeeded:
            _note_answer(operation, response.json())
        return response


def _operation(request: httpx.Request) -> Operation | None:
    """Return what a request asks for; None where that is nothing of claims, or not readable."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    partner = token.partition(".")[0]
    if not partner or request.url.path != "/v1/claims":
        return None
    now = time.monotonic()
    if request.method == "GET":
        query = request.url.params
        if "partner_user_id" in query or "entity_id" not in query:
            return None
        entity, page = query["entity_id"], query.get("page_token")
        return Operation(op="list_claims", partner=partner, entity=entity, page=page, start=now)
    try:
        body = json.loads(request.content)
        entity, key = body["entity_id"], body["partner_claim_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return Operation(op="create_claim", partner=partner, entity=entity, key=key, start=now)


def _note_answer(operation: Operation, answer: dict[str, Any]) -> None:
    if operation.op == "list_claims":
        operation.claims = [one["claim_id"] for one in answer["claims"]]
        operation.next_page = answer["next_page_token"]
    else:
        operation.claim_id = answer["claim_id"]
        operation.already_existed = answer["already_existed"]
