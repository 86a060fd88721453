"""Clients that never stop while releases change, and repeat through one what another has made."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import httpx

from tests.no_tls import NO_TLS
from tests.world import claim_body

PAUSE_SECONDS = 0.02
TIMEOUT_SECONDS = 30.0


@dataclass
class Traffic:
    """What is sent to the origins that are up, and what was answered."""

    token: str
    entity_id: str
    origins: list[str]
    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of claims by the partner's references."""
    answers: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: "count[int]" = field(default_factory=count)

    async def run(self, clients: int) -> None:
        """Send until it is over."""
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, verify=NO_TLS) as http:
            await asyncio.gather(*(self._client(http) for _ in range(clients)))

    async def _client(self, http: httpx.AsyncClient) -> None:
        while not self.over.is_set():
            number = next(self._numbers)
            first, *others = self._turn(number)
            reference = f"case-{number}"
            made = await self._create(http, first, reference)
            if made is not None:
                self.acknowledged[reference] = made
                # The other release knows it, and repeats the answer.
                again = await self._create(http, (others or [first])[0], reference)
                if again not in {None, made}:
                    self.faults.append(f"{reference} was {made} and is {again}")
            await self._list(http, first)
            await asyncio.sleep(PAUSE_SECONDS)

    def _turn(self, number: int) -> list[str]:
        at = number % len(self.origins)
        return self.origins[at:] + self.origins[:at]

    async def _create(self, http: httpx.AsyncClient, origin: str, reference: str) -> str | None:
        body = claim_body(self.entity_id, reference)
        answer = await self._send(http, "POST", origin, json=body)
        return None if answer is None else answer.json()["claim_id"]

    async def _list(self, http: httpx.AsyncClient, origin: str) -> None:
        query = {"entity_id": self.entity_id, "limit": "20"}
        await self._send(http, "GET", origin, params=query)

    async def _send(
        self, http: httpx.AsyncClient, method: str, origin: str, **more: object
    ) -> httpx.Response | None:
        """Return a success; None for an announced 503; anything else is a fault."""
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            answer = await http.request(method, f"{origin}/v1/claims", headers=headers, **more)
        except httpx.TransportError as error:
            if origin in self.origins:  # a server that was told to stop may close what is idle
                self.faults.append(f"{method} {origin}: {error!r}")
            return None
        self.answers[f"{method} {answer.status_code}"] += 1
        if answer.is_success:
            return answer
        if (
            answer.status_code != httpx.codes.SERVICE_UNAVAILABLE
            or "Retry-After" not in answer.headers
        ):
            self.faults.append(f"{method} {answer.status_code} {answer.text[:300]}")
        return None
