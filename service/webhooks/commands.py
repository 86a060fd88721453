"""What members do to their webhook endpoints, and what sending finds out: a method each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from service.core.clock import Clock
from service.core.errors import invalid
from service.core.ids import NewId
from service.facts.caller import Mode
from service.facts.endpoints import Endpoints, WebhookEndpoint, endpoints_stream
from service.ledger.events import Cause, Event
from service.ledger.ledger import Ledger
from service.ledger.transaction import Transaction
from service.ledger.writing import Append
from service.partners.personal import personal_key
from service.webhooks import decisions
from service.webhooks.past import COUNTED, ENDPOINTS, proven
from service.webhooks.queues import Queues
from service.webhooks.urls import NotPublic, check_url

P = ParamSpec("P")

ACTOR = "system:webhooks"


@dataclass(frozen=True, slots=True)
class EndpointCommands:
    """Writes to the ledger of accounts."""

    accounts: Ledger
    queues: Queues
    clock: Clock
    new_id: NewId
    allow_private: bool

    def new_endpoint_id(self) -> str:
        """Draw the id of an endpoint to be added."""
        return self.new_id("whe", self.clock())

    async def look(self, partner_id: str, endpoint_id: str) -> WebhookEndpoint:
        """Return an endpoint as its partner's stream has it; refuses with `endpoint_not_found`."""
        past = await self.accounts.fold(endpoints_stream(partner_id), ENDPOINTS)
        return decisions.find(past.endpoints, endpoint_id)

    async def add(
        self,
        partner_id: str,
        endpoint_id: str,
        mode: Mode,
        url: str,
        types: Sequence[str],
        cause: Cause,
    ) -> None:
        """Add an endpoint, which gets what happens from now on."""
        await self._decide(
            partner_id,
            cause,
            decisions.add,
            endpoint_id=endpoint_id,
            mode=mode,
            url=self._checked(url),
            types=types,
            after=await self.queues.end_of(mode),
        )

    async def change(
        self,
        partner_id: str,
        endpoint_id: str,
        url: str,
        types: Sequence[str],
        cause: Cause,
        expected_version: int | None = None,
    ) -> None:
        """Change where an endpoint is, and what it wants, from the next attempt on.

        Refuses with `form_outdated` where these have changed since `expected_version`.
        """
        await self._decide(
            partner_id,
            cause,
            decisions.change,
            endpoint_id=endpoint_id,
            url=self._checked(url),
            types=types,
            expected_version=expected_version,
        )

    async def rotate(self, partner_id: str, endpoint_id: str, version: int, cause: Cause) -> None:
        """Replace an endpoint's secret by that of `version`, the next one."""
        await self._decide(
            partner_id, cause, decisions.rotate, endpoint_id=endpoint_id, version=version
        )

    async def disable(
        self, partner_id: str, endpoint_id: str, reason: decisions.Reason, cause: Cause
    ) -> None:
        """Send nothing to an endpoint until it is enabled."""
        await self._decide(
            partner_id, cause, decisions.disable, endpoint_id=endpoint_id, reason=reason
        )

    async def enable(self, partner_id: str, endpoint_id: str, cause: Cause) -> None:
        """Resume an endpoint where it stopped."""
        await self._decide(partner_id, cause, decisions.enable, endpoint_id=endpoint_id)

    async def remove(self, partner_id: str, endpoint_id: str, cause: Cause) -> None:
        """Remove an endpoint, and what is still to be delivered to it."""
        await self._decide(partner_id, cause, decisions.remove, endpoint_id=endpoint_id)

    def _checked(self, url: str) -> str:
        try:
            check_url(url, allow_private=self.allow_private)
        except NotPublic as error:
            raise invalid("url", str(error)) from error
        return url

    async def _decide(
        self,
        partner_id: str,
        cause: Cause,
        decide: Callable[Concatenate[Endpoints, str, P], list[Event]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Append what `decide` decides.

        Refuses with `rate_limited` what the partner's people may not change any more on that day.
        """
        stream = endpoints_stream(partner_id)

        async def attempt(transaction: Transaction) -> None:
            known, budgets = await transaction.fold(stream, ENDPOINTS)
            events = decide(known, partner_id, *args, **kwargs)
            changes = budgets.of([*proven(known, events)])
            renews = decide is decisions.rotate
            changes.allow(events, COUNTED, cause.actor, self.clock(), renews=renews)
            if events:
                key = await personal_key(transaction, partner_id, events)
                await transaction.append(Append(stream, known.version, events, cause, key))

        await self.accounts.decide(attempt)
