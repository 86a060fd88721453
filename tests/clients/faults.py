"""A partner's program on the installed Python client, run through the fault server.

`python faults.py async|sync PREFIX CLAIMS` creates claims, uploads documents, asks for links and
reads everything back. It prints what it was told, as JSON. Settings are in the environment.
"""

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from claim_ledger_client import (
    AsyncClient,
    ClaimLedgerError,
    ClaimRequest,
    Client,
    ConnectRequest,
    Defendant,
    Invoice,
    Retries,
    UploadRequest,
)

AT_ONCE = 32
DOCUMENTS = 30
LINKS = 60
KEY, URL, ENTITY = (os.environ[f"CLAIMS_{name}"] for name in ("API_KEY", "API_URL", "ENTITY_ID"))
SETTINGS: dict[str, Any] = {
    "base_url": URL,
    "timeout_seconds": float(os.environ["CLAIMS_TIMEOUT"]),
    "retries": Retries(attempts=40, first_wait_seconds=0.05, total_seconds=600),
}


def claim(reference: str, **more: Any) -> ClaimRequest:
    """Return a small claim."""
    invoices = [Invoice(total_amount_for_invoice="10.00")]
    whose = {"entity_id": ENTITY, "partner_claim_id": reference}
    return ClaimRequest(**whose, defendant=Defendant(name="Debtor"), invoices=invoices, **more)


def file(reference: str) -> UploadRequest:
    """Return what is asked to be uploaded for a claim."""
    named = {"filename": "a.pdf", "mime_type": "application/pdf"}
    return UploadRequest(entity_id=ENTITY, partner_claim_id=reference, **named)


async def run_async(prefix: str, claims: int) -> dict[str, Any]:
    """Do all of it with the asynchronous client."""
    room = asyncio.Semaphore(AT_ONCE)
    async with AsyncClient(KEY, **SETTINGS) as client:

        async def create(number: int) -> tuple[str, str]:
            async with room:
                reference = f"{prefix}-{number}"
                return reference, (await client.claims.create(claim(reference))).claim_id

        async def attach(number: int) -> tuple[str, str]:
            async with room:
                reference = f"{prefix}-document-{number}"
                found = await client.documents.upload(file(reference), reference.encode())
                answer = await client.claims.create(claim(reference, document_refs=[found]))
                return reference, answer.claim_id

        async def link(number: int) -> str:
            async with room:
                try:
                    asked = ConnectRequest(partner_user_id=f"{prefix}-{number}")
                    return (await client.connect_requests.create(asked)).connect_url
                except ClaimLedgerError as error:
                    return type(error).__name__

        return {
            "created": await asyncio.gather(*map(create, range(claims))),
            "attached": await asyncio.gather(*map(attach, range(DOCUMENTS))),
            "links": await asyncio.gather(*map(link, range(LINKS))),
            "listed": [one.claim_id async for one in client.claims.list(ENTITY, limit=100)],
            "events": [one.id async for one in client.events.list(limit=100)],
        }


def run_sync(prefix: str, claims: int) -> dict[str, Any]:
    """Do all of it with the synchronous client, in threads."""
    with Client(KEY, **SETTINGS) as client, ThreadPoolExecutor(AT_ONCE) as threads:

        def create(number: int) -> tuple[str, str]:
            reference = f"{prefix}-{number}"
            return reference, client.claims.create(claim(reference)).claim_id

        def attach(number: int) -> tuple[str, str]:
            reference = f"{prefix}-document-{number}"
            found = client.documents.upload(file(reference), reference.encode())
            answer = client.claims.create(claim(reference, document_refs=[found]))
            return reference, answer.claim_id

        def link(number: int) -> str:
            try:
                asked = ConnectRequest(partner_user_id=f"{prefix}-{number}")
                return client.connect_requests.create(asked).connect_url
            except ClaimLedgerError as error:
                return type(error).__name__

        return {
            "created": list(threads.map(create, range(claims))),
            "attached": list(threads.map(attach, range(DOCUMENTS))),
            "links": list(threads.map(link, range(LINKS))),
            "listed": [one.claim_id for one in client.claims.list(ENTITY, limit=100)],
            "events": [one.id for one in client.events.list(limit=100)],
        }


if __name__ == "__main__":
    kind, prefix, count = sys.argv[1:]
    told = (
        run_sync(prefix, int(count))
        if kind == "sync"
        else asyncio.run(run_async(prefix, int(count)))
    )
    print(json.dumps(told))  # noqa: T201 - for its starter
