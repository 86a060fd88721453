"""The clients of a run: claims, documents, repetitions, lists, links, onboardings, endings."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from service.app.bootstrap import Service
from service.core.errors import Refusal
from service.facts.caller import Caller
from service.ledger.database import LedgerError
from tests.soak.history import History
from tests.world import STAFF, claim_body

PAUSE_SECONDS_MAX = 0.05
TIMEOUT_SECONDS = 10.0
WEIGHTS = {"create": 45, "documents": 5, "repeat": 20, "list": 20, "link": 5, "onboard": 5}
DOCUMENTS_MAX = 3
"""Of a claim with documents."""
NOT_UPLOADED = 0.1
"""How many of the documents are referred to, and never uploaded."""
LONG_LISTS = 0.1
"""How many of the lists are as long as they may be."""
PDF = "application/pdf"
MESSAGE = "Two reminders were sent and not answered. " * 20


@dataclass
class Customer:
    """A partner's key, and an entity that it is connected to, now and then."""

    partner_id: str
    key_id: str
    token: str
    entity_id: str
    claims: dict[str, list[dict[str, str]]] = field(default_factory=dict[str, list[dict[str, str]]])
    """References that a claim was asked for under, whatever the answer was, and its documents."""


@dataclass
class Client:
    """One client, which has one request under way and never gives a reference up."""

    name: str
    customers: list[Customer]
    http: httpx.AsyncClient
    history: History
    random: Random
    weights: Mapping[str, int] = field(default_factory=lambda: WEIGHTS)
    pause_seconds_max: float = PAUSE_SECONDS_MAX
    _numbers: int = 0

    async def run(self, over: asyncio.Event) -> None:
        """Send one request after another until it is over."""
        names, weights = list(self.weights), list(self.weights.values())
        while not over.is_set():
            customer = self.random.choice(self.customers)
            match self.random.choices(names, weights)[0]:
                case "create":
                    self._numbers += 1
                    await self.create(customer, f"{self.name}-{self._numbers}", [])
                case "documents":
                    self._numbers += 1
                    await self.create_with_documents(customer, f"{self.name}-{self._numbers}")
                case "repeat" if customer.claims:
                    key = self.random.choice(list(customer.claims))
                    await self.create(customer, key, customer.claims[key])
                case "list":
                    is_long = self.random.random() < LONG_LISTS
                    await self.list(customer, limit=200 if is_long else 20)
                case "link":
                    body = {"partner_user_id": self.name}
                    await self._call("connect", customer, "POST", "/connect-requests", json=body)
                case _:
                    self._numbers += 1
                    reference = f"{self.name}-{self._numbers}"
                    body = {
                        "partner_user_id": reference,
                        "company_name": "Example Ltd",
                        "user_email": f"{reference}@example.com",
                    }
                    await self._call("onboard", customer, "POST", "/onboardings", json=body)
            await asyncio.sleep(self.random.uniform(0, self.pause_seconds_max))

    async def create(self, customer: Customer, key: str, documents: list[dict[str, str]]) -> None:
        """Create a claim, or repeat the request that did."""
        customer.claims[key] = documents
        body = claim_body(customer.entity_id, key, message=MESSAGE)
        body |= {"document_refs": documents} if documents else {}
        paths = [one["storage_path"] for one in documents]
        await self._call(
            "create_claim", customer, "POST", "/claims", key=key, documents=paths, json=body
        )

    async def create_with_documents(self, customer: Customer, key: str) -> None:
        """Upload documents, or now and then not, and create a claim that refers to them."""
        documents: list[dict[str, str]] = []
        for _ in range(self.random.randint(1, DOCUMENTS_MAX)):
            body = {
                "entity_id": customer.entity_id,
                "partner_claim_id": key,
                "filename": "invoice.pdf",
                "mime_type": PDF,
            }
            minted = await self._call("mint", customer, "POST", "/documents/upload-url", json=body)
            if not minted:
                continue
            if self.random.random() >= NOT_UPLOADED:
                await self._put(customer, minted)
            document = {"storage_path": minted["storage_path"], "filename": "invoice.pdf"}
            documents.append(document | {"mime_type": PDF})
        await self.create(customer, key, documents)

    async def _put(self, customer: Customer, minted: dict[str, Any]) -> None:
        """Upload a document; what the claim is told, if the store was away, is not known."""
        of = {"partner": customer.partner_id, "entity": customer.entity_id}
        path, url = minted["storage_path"], minted["upload_url"]
        async with self.history.invoked(self.name, "put", key=path, **of) as record:
            with suppress(httpx.TransportError):
                answer = await self.http.put(
                    url, headers=minted["required_headers"], content=path.encode()
                )
                record["status"] = answer.status_code

    async def list(
        self, customer: Customer, token: str | None = None, limit: int = 200
    ) -> str | None:
        """List a page of the entity's claims; return the next page's token."""
        query = {"entity_id": customer.entity_id, "limit": str(limit)}
        query |= {} if token is None else {"page_token": token}
        answer = await self._call("list_claims", customer, "GET", "/claims", params=query)
        return answer.get("next_page_token")

    async def _call(
        self,
        op: str,
        customer: Customer,
        method: str,
        path: str,
        *,
        key: str | None = None,
        documents: Sequence[str] = (),
        **more: Any,
    ) -> dict[str, Any]:
        """Send a request, and record it; return the answer's body, empty where none came."""
        of = {"partner": customer.partner_id, "entity": customer.entity_id, "key": key}
        of |= {"documents": documents} if op == "create_claim" else {}
        headers = {"Authorization": f"Bearer {customer.token}"}
        async with self.history.invoked(self.name, op, **of) as record:
            try:
                answer = await self.http.request(method, path, headers=headers, **more)
            except httpx.TransportError:
                return {}
            record["status"] = answer.status_code
            if not answer.is_success:
                return {}
            body: dict[str, Any] = answer.json()
            record |= {n: body[n] for n in ("claim_id", "already_existed") if n in body}
            if "claims" in body:
                # An hour's lists have millions of ids, of which few are different.
                record["claims"] = [sys.intern(claim["claim_id"]) for claim in body["claims"]]
                record["page_token"] = more["params"].get("page_token")
                record["next_page_token"] = body["next_page_token"]
            return body


@dataclass
class Disconnections:
    """Ends connections, and makes them anew: what customers do."""

    service: Service
    customers: list[Customer]
    history: History
    random: Random

    async def run(self, over: asyncio.Event) -> None:
        """End one and make it anew, again and again."""
        while not over.is_set():
            customer = self.random.choice(self.customers)
            await self._record("disconnect", customer)
            await asyncio.sleep(self.random.uniform(0, 1))
            await self._record("reconnect", customer)
            await asyncio.sleep(self.random.uniform(0, 3))

    async def _record(self, op: str, customer: Customer) -> None:
        live = self.service.modes["live"].connections
        of = {"partner": customer.partner_id, "entity": customer.entity_id, "key": None}
        async with self.history.invoked("customer", op, **of) as record:
            try:
                if op == "disconnect":
                    await live.disconnect(customer.entity_id, customer.partner_id, STAFF)
                else:
                    await connect(self.service, customer)
                record["status"] = 200
            except Refusal as refusal:
                record["status"] = refusal.row.status
            except LedgerError:
                pass  # whether it took effect is unknown


async def connect(service: Service, customer: Customer) -> None:
    """Have a link issued and approved."""
    live = service.modes["live"].connections
    caller = Caller(customer.partner_id, customer.key_id, "live", 0, False, False, STAFF.request_id)
    link = await live.issue_link(caller, "user", None)
    await live.approve(link.connect_url.rpartition("/")[2], customer.entity_id, STAFF)
