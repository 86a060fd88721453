"""Where an endpoint's events go: a row finds the endpoint, its partner's events say the rest."""

import asyncio
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from projections.endpoints.reader import EndpointsReader, Sendable
from service.facts.caller import Mode
from service.facts.endpoints import endpoints_stream
from service.ledger.ledger import Ledger
from service.webhooks.past import ENDPOINTS
from service.webhooks.waits import CANNOT_SEND_SECONDS

KNOWN_SECONDS: Final = 60.0
"""How long events are not read again for a row that stays as it is: a partner can have many."""


class _Known(NamedTuple):
    row: Sendable
    target: Sendable
    until: float


class _Closed(NamedTuple):
    row: Sendable | None
    until: float


@dataclass(slots=True)
class Targets:
    """The endpoints of one mode, whose facts are in the ledger of accounts.

    What is known is in the order in which it is read again, so that what was removed is forgotten.
    That an endpoint takes nothing now is kept here, not in its queue: what the queue waits for is a
    rest after failures, which it keeps when it is enabled again.
    """

    endpoints: EndpointsReader
    accounts: Ledger
    mode: Mode
    _known: dict[str, _Known] = field(default_factory=dict[str, _Known], init=False)
    _closed: dict[str, _Closed] = field(default_factory=dict[str, _Closed], init=False)

    def __len__(self) -> int:
        return len(self._known)

    async def of(self, partner_id: str, endpoint_id: str) -> Sendable | None:
        """Return a partner's endpoint as its events have it, if events are sent there now.

        Raises UnboundEvent where another than this service wrote one of them.
        """
        row = (await self.endpoints.sendable(endpoint_id)).get(endpoint_id)
        target = await self._target(partner_id, endpoint_id, row)
        if target is None:
            until = asyncio.get_running_loop().time() + CANNOT_SEND_SECONDS
            self._closed[endpoint_id] = _Closed(row, until)
        return target

    async def closed(self) -> list[str]:
        """Return endpoints to which nothing could be sent a moment ago, and which are as they were.

        After a while each is looked at again: only its events say whether it is enabled.
        """
        if not self._closed:
            return []
        rows, now = await self.endpoints.sendable(*self._closed), asyncio.get_running_loop().time()
        for endpoint_id, one in list(self._closed.items()):
            if one.until < now or one.row != rows.get(endpoint_id):
                del self._closed[endpoint_id]
        return list(self._closed)

    async def _target(
        self, partner_id: str, endpoint_id: str, row: Sendable | None
    ) -> Sendable | None:
        now = asyncio.get_running_loop().time()
        self._forget_before(now)
        known = self._known.get(endpoint_id)
        if row is None or row.partner_id != partner_id:
            self._known.pop(endpoint_id, None)
            return None
        if known is None or known.row != row:
            self._known.pop(endpoint_id, None)
            past = await self.accounts.fold(endpoints_stream(partner_id), ENDPOINTS)
            told = past.endpoints.by_id.get(endpoint_id)
            if told is None or told.url is None or told.disabled or told.mode != self.mode:
                return None
            target = row._replace(
                url=told.url, types=tuple(told.types), secret_version=told.secret_version
            )
            known = self._known[endpoint_id] = _Known(row, target, now + KNOWN_SECONDS)
        return known.target

    def _forget_before(self, now: float) -> None:
        while self._known:
            first = next(iter(self._known))
            if self._known[first].until >= now:
                return
            del self._known[first]
