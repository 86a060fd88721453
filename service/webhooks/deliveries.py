"""Delivering to one endpoint: its queue is filled from the partner's events, and worked off.

At least once, with the same id each time. Of one claim (or connection, or link) one event follows
another; what is stuck holds up nothing else, and is set aside after three days. An endpoint that
fails gets one event at a time. It is paused when it took nothing in three days, or when more events
that it refused are set aside than `ASIDE_MAX`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

import structlog

from projections.endpoints.reader import Sendable
from service.core.clock import Clock
from service.core.loops import STEP_SECONDS
from service.events.wire import TEST_EVENT
from service.ledger.database import Row, always
from service.ledger.events import Cause
from service.ledger.projector import arrays
from service.ledger.queue_runner import CUT_OFF, NotBefore
from service.ledger.service_keys import GetSecrets
from service.ledger.sql import queries
from service.webhooks.commands import ACTOR, EndpointCommands
from service.webhooks.messages import Message, Messages
from service.webhooks.sender import SECONDS_MAX, EndpointAnswer, Undelivered
from service.webhooks.shared_pool import SharedPool
from service.webhooks.signing import headers, signing_now
from service.webhooks.targets import Targets
from service.webhooks.waits import (
    CANNOT_SEND_SECONDS,
    ENDPOINT_WAIT_SECONDS_MAX,
    FAILURES_MAX,
    GIVES_UP_AFTER,
    RETRIES,
    wait_after,
)

OPEN_MAX: Final = 200
"""Deliveries in an endpoint's queue; what follows stays in the log."""
AT_ONCE_MAX: Final = 8
"""Requests to one endpoint at a time."""
LEASE_SECONDS: Final = 2 * SECONDS_MAX
"""After this, deliveries of a process that was cut off are due again."""
ASIDE_MAX: Final = 1000
"""Events that may be set aside for an endpoint; one that refuses more is given up."""

_GONE: Final = 410

_SQL = queries("service.webhooks")
_LEDGER_SQL = queries("service.ledger")

log = structlog.get_logger()


class Post(Protocol):
    """Sends a message."""

    async def __call__(
        self, url: str, headers: dict[str, str], body: bytes, now: datetime, /
    ) -> EndpointAnswer:
        """Return the answer; raises Undelivered."""
        ...


class Delivery(NamedTuple):
    """A delivery to make, as its row in the queue has it."""

    position: int
    subject: str
    type: str
    noted_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class DeliveryParts:
    """What the deliveries of a mode share."""

    pool: SharedPool
    messages: Messages
    targets: Targets
    commands: EndpointCommands
    secrets: GetSecrets
    post: Post
    clock: Clock


class _Filled(NamedTuple):
    """How far a queue came, and for how many deliveries there is room in it."""

    position: int
    room: int


class _Made(NamedTuple):
    status: int
    duration_ms: float


@dataclass(slots=True)
class _Batch:
    """What is being delivered, and to where, as it was when it was taken; and what was."""

    endpoint: Sendable | None = None
    messages: Mapping[int, Message] = field(default_factory=dict[int, Message])
    made: dict[int, _Made] = field(default_factory=dict[int, _Made])
    refused: set[int] = field(default_factory=set[int])
    is_full: bool = False
    failed: bool = False
    rest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The queue of one endpoint, as work for a QueueRunner."""

    parts: DeliveryParts
    endpoint_id: str
    partner_id: str
    _batch: _Batch = field(default_factory=_Batch)

    lease_seconds = LEASE_SECONDS

    @property
    def seconds_max(self) -> float:
        """How long one attempt may take, what it reads and records included."""
        return LEASE_SECONDS - 5.0

    async def take(self, now: datetime, until: datetime) -> Sequence[Delivery]:
        """Fill the queue, and take what is due; nothing unless the endpoint takes events now."""
        pool = self.parts.pool
        endpoint = await self.parts.targets.of(self.partner_id, self.endpoint_id)
        if endpoint is None:
            return []
        if endpoint.types:
            await pool.fetch(_SQL.drop_unwanted, self.endpoint_id, endpoint.types)
        queue = await pool.fetchrow(_SQL.room, self.endpoint_id, OPEN_MAX, now)
        if queue is None:
            return []
        at_once = 1 if queue["is_failing"] else AT_ONCE_MAX
        filled, rows = _Filled(queue["position"], queue["room"]), list[Row]()
        time = asyncio.get_running_loop().time
        ends_at = time() + STEP_SECONDS
        while not rows and filled is not None and time() < ends_at:
            filled = await self._fill(endpoint, filled, now)
            if queue["has_aside"]:
                await pool.fetch(_SQL.untie, self.endpoint_id, now)
            passed = self.parts.clock() - now
            rows = await pool.fetch(_SQL.take, self.endpoint_id, now, at_once, until + passed)
        items = [Delivery(*row) for row in rows]
        batch = self._batch
        batch.endpoint, batch.messages = endpoint, await self._messages(items)
        batch.failed, batch.rest_seconds = False, 0.0
        batch.refused.clear()
        batch.is_full = queue["room"] <= 0
        return await self._readable(items)

    async def _fill(self, endpoint: Sendable, at: _Filled, now: datetime) -> _Filled | None:
        """Queue what follows for the endpoint, of the types that it wants; None: no more now."""
        position, room = at
        found = await self.parts.messages.after(self.partner_id, position, room) if room > 0 else ()
        if not found:
            return None
        notes = [one[:3] for one in found if not endpoint.types or one.type in endpoint.types]
        positions, types, lines = arrays(notes) or ([], [], [])
        end = found[-1].position
        renamed = {one.subject: one.line for one in found if one.subject not in {None, one.line}}
        if renamed:
            names = list(renamed), list(renamed.values())
            await self.parts.pool.fetch(_SQL.rename, self.endpoint_id, *names)
        row = await self.parts.pool.fetchrow(
            _SQL.note, self.endpoint_id, position, end, positions, lines, types, now
        )
        return None if row is None else _Filled(end, room - len(notes))

    async def _readable(self, items: Sequence[Delivery]) -> Sequence[Delivery]:
        """Return what can be read. The rest waits, as if never tried: the fault is ours."""
        messages = self._batch.messages
        unread = [one.position for one in items if one.position not in messages]
        if unread:
            await self._put_back(unread)
            log.warning(
                "webhook events cannot be read",
                partner_id=self.partner_id,
                position=unread[0],
                count=len(unread),
            )
        return [one for one in items if one.position in messages]

    async def _put_back(self, positions: Sequence[int]) -> None:
        later = self.parts.clock() + timedelta(seconds=CANNOT_SEND_SECONDS)
        await self.parts.pool.fetch(_SQL.unread, self.endpoint_id, list(positions), later)

    def held(self, items: Sequence[Delivery]) -> AbstractAsyncContextManager[Sequence[Delivery]]:
        """Hold nothing."""
        return nullcontext(items)

    async def attempt(self, item: Delivery) -> None:
        """Send an event; raise NotBefore unless the endpoint took it.

        Anything else that is raised is a fault of ours, and counts as no attempt.
        """
        try:
            await self._attempt(item)
        except NotBefore:
            self._batch.refused.add(item.position)
            raise

    async def _attempt(self, item: Delivery) -> None:
        parts, endpoint = self.parts, self._batch.endpoint
        message = self._batch.messages[item.position]
        if endpoint is None:
            raise LookupError("nothing was taken")
        now, time = parts.clock(), asyncio.get_running_loop().time
        version, rotated_at = endpoint.secret_version, endpoint.secret_rotated_at
        keys = signing_now(await parts.secrets(), self.endpoint_id, version, rotated_at, now)
        signed = headers(keys, message.id, now, message.body)
        signed["content-type"] = "application/cloudevents+json"
        began = time()
        try:
            answer = await parts.post(endpoint.url, signed, message.body.encode(), now)
        except Undelivered as error:
            if error.reason:
                log.info(
                    "webhook host refused",
                    partner_id=self.partner_id,
                    position=item.position,
                    error_type=error.reason,
                )
            raise NotBefore(str(error), 0.0) from error
        if answer.status == _GONE:
            cause = Cause(ACTOR, f"webhook-{message.id}")
            await parts.commands.disable(self.partner_id, self.endpoint_id, "gone", cause)
        if not answer.is_delivered:
            seconds = answer.retry_after_seconds or 0.0
            rest_seconds = min(seconds, ENDPOINT_WAIT_SECONDS_MAX)
            self._batch.rest_seconds = max(self._batch.rest_seconds, rest_seconds)
            raise NotBefore(f"HTTP {answer.status}", seconds)
        self._batch.made[item.position] = _Made(answer.status, (time() - began) * 1000)

    async def _messages(self, items: Sequence[Delivery]) -> Mapping[int, Message]:
        """Return the messages by their positions; those that stand apart are read one by one."""
        messages = self.parts.messages
        tests = [one for one in items if one.type == TEST_EVENT]
        found = {
            one.position: messages.test(self.endpoint_id, one.position, one.noted_at)
            for one in tests
        }
        for position in sorted(one.position for one in items if one.type != TEST_EVENT):
            if position not in found:
                page = await messages.after(self.partner_id, position - 1, AT_ONCE_MAX)
                found |= {one.position: one for one in page}
        return found

    def log_failure(self, item: Delivery, error_type: str) -> None:
        """Log an attempt that failed; quietly where it is the partner's server that did."""
        is_theirs = item.position in self._batch.refused
        note = log.debug if is_theirs else log.warning
        note(
            "webhook failed" if is_theirs else "webhook not sent",
            partner_id=self.partner_id,
            position=item.position,
            attempts=item.attempts,
            error_type=error_type,
        )

    async def done(self, items: Sequence[Delivery]) -> None:
        """Move deliveries to the log."""
        rows = [(one.position, *self._batch.made.pop(one.position)) for one in items]
        await self.parts.pool.fetch(_SQL.done, self.endpoint_id, *arrays(rows), self.parts.clock())

    async def wait(self, item: Delivery, later: datetime, fault: str) -> None:
        """Make it due again later; pause an endpoint that took nothing for three days."""
        if item.position not in self._batch.refused:
            await self._put_back([item.position])
        elif await self._is_given_up(item, later, fault):
            await self._give_up()

    async def set_aside(self, item: Delivery, fault: str) -> None:
        """Set the item's claim aside; pause what took nothing, or has too many events set aside."""
        if item.position not in self._batch.refused and fault != CUT_OFF:
            await self._put_back([item.position])
            return
        later = self.parts.clock() + wait_after(RETRIES.attempts_max)
        if not await self._is_given_up(item, later, fault):
            aside = await self.parts.pool.fetchrow(
                _SQL.set_aside, self.endpoint_id, item.subject, item.position, fault
            )
            if aside is None or aside["aside"] <= ASIDE_MAX:
                return
        await self._give_up()

    async def _is_given_up(self, item: Delivery, later: datetime, fault: str) -> bool:
        """Note a failure; return whether the endpoint has taken nothing for three days."""
        now, batch = self.parts.clock(), self._batch
        is_first, batch.failed = int(not batch.failed), True
        row = await self.parts.pool.fetchrow(
            _SQL.failed,
            *(self.endpoint_id, item.position, later, fault, now, is_first),
            *(FAILURES_MAX, ENDPOINT_WAIT_SECONDS_MAX, batch.rest_seconds),
        )
        if batch.is_full:
            await self.parts.pool.fetch(_SQL.put_off_full, self.endpoint_id)
        if row is None or row["failing_since"] > now - GIVES_UP_AFTER:
            return False
        # By the database's clock, too: to one that is days ahead, each failure is the last.
        shared = always(await self.parts.pool.fetchrow(_LEDGER_SQL.now))["now"]
        return row["failing_since"] <= shared - GIVES_UP_AFTER

    async def _give_up(self) -> None:
        cause = Cause(ACTOR, f"webhook-{self.endpoint_id}")
        await self.parts.commands.disable(self.partner_id, self.endpoint_id, "failing", cause)
