"""Documents: what a signature, twenty references and a large upload cost on a real `dev`."""

import asyncio
import re
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from service.cli.dev.gcs.credentials import local_credentials
from service.storage.signer import KeySigner
from tests.dev_process import Dev
from tests.no_tls import NO_TLS

SIGNATURES = 200
ROUNDS = 5
CLAIMS = 40
REFERENCES = 20
LARGE_BYTES = 50 * 1024 * 1024
PDF = "application/pdf"


def documents(say: Callable[[str], None]) -> dict[str, Any]:
    """Measure signing, linking and uploading."""
    with TemporaryDirectory(prefix="claim-ledger-bench-") as directory:
        say("documents: signing")
        signing = asyncio.run(_signing(Path(directory) / "key"))
        say("documents: claims with and without references, a 50 MB PUT")
        dev = Dev(Path(directory) / "data")
        try:
            return {"signing": signing} | asyncio.run(_through(dev))
        finally:
            dev.end()


async def _signing(directory: Path) -> dict[str, Any]:
    key = local_credentials(directory).key
    private = serialization.load_pem_private_key(key["private_key"].encode(), password=None)
    if not isinstance(private, rsa.RSAPrivateKey):
        raise TypeError("the key is not RSA")
    signer = KeySigner(key, "bucket")
    ratios: list[float] = []
    ours: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for number in range(SIGNATURES):
            private.sign(b"%d" % number, padding.PKCS1v15(), hashes.SHA256())
        bare = time.perf_counter() - started
        started = time.perf_counter()
        for number in range(SIGNATURES):
            await signer.sign(f"entities/e/claims/c/documents/doc_{number}.pdf", PDF, LARGE_BYTES)
        ours.append(time.perf_counter() - started)
        ratios.append(ours[-1] / bare)
    return {
        "goal": 1.3,
        "of_one_rsa_2048_signature": round(statistics.median(ratios), 2),
        "ms": round(statistics.median(ours) / SIGNATURES * 1000, 3),
    }


async def _through(dev: Dev) -> dict[str, Any]:
    facts = dev.facts
    headers = {"Authorization": f"Bearer {facts['live_key']}"}
    async with (
        httpx.AsyncClient(
            base_url=facts["base_url"] + "/", headers=headers, timeout=60, verify=NO_TLS
        ) as client,
        httpx.AsyncClient(timeout=60, verify=NO_TLS) as storage,
    ):
        bare, linked = await _claims(client, storage, facts["entity_id"])
        before = _peak_megabytes(dev.process.pid)
        await _upload(client, storage, facts["entity_id"], "large", bytes(LARGE_BYTES))
        after = _peak_megabytes(dev.process.pid)
    return {
        "claim_with_20_references": {
            "p50_ms": round(linked * 1000, 2),
            "p50_ms_without": round(bare * 1000, 2),
            "of_one_without": round(linked / bare, 2),
        },
        "put_of_50_mb": {"peak_growth_megabytes": round(after - before, 1)},
    }


async def _claims(
    client: httpx.AsyncClient, storage: httpx.AsyncClient, entity_id: str
) -> tuple[float, float]:
    """Return the medians of claims without and with references, measured alternately."""
    bare: list[float] = []
    linked: list[float] = []
    for number in range(CLAIMS):
        reference = f"linked-{number}"
        refs = [
            await _upload(client, storage, entity_id, reference, b"%PDF") for _ in range(REFERENCES)
        ]
        bare.append(await _timed(_claim(client, entity_id, f"bare-{number}", [])))
        linked.append(await _timed(_claim(client, entity_id, reference, refs)))
    return statistics.median(bare), statistics.median(linked)


async def _timed(request: Awaitable[None]) -> float:
    started = time.perf_counter()
    await request
    return time.perf_counter() - started


async def _claim(
    client: httpx.AsyncClient, entity_id: str, reference: str, refs: list[dict[str, str]]
) -> None:
    body = {
        "entity_id": entity_id,
        "partner_claim_id": reference,
        "defendant": {"name": "Debtor"},
        "invoices": [{"number": "INV-1"}],
        "message": "unpaid",
    }
    answer = await client.post("claims", json=body | ({"document_refs": refs} if refs else {}))
    answer.raise_for_status()


async def _upload(
    client: httpx.AsyncClient,
    storage: httpx.AsyncClient,
    entity_id: str,
    reference: str,
    content: bytes,
) -> dict[str, str]:
    asked = {
        "entity_id": entity_id,
        "partner_claim_id": reference,
        "filename": "file.pdf",
        "mime_type": PDF,
    }
    minted = (await client.post("documents/upload-url", json=asked)).raise_for_status().json()
    put = await storage.put(
        minted["upload_url"], headers=minted["required_headers"], content=content
    )
    put.raise_for_status()
    return {
        "storage_path": minted["storage_path"],
        "mime_type": PDF,
        "filename": "file.pdf",
    }


def _peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    if match is None:
        raise RuntimeError("the kernel does not tell a process's peak memory")
    return int(match[1]) / 1024
