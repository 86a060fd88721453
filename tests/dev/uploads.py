"""Uploads to the store of a running dev."""

import re
import subprocess
from typing import Any, Final

import httpx

from tests.dev_process import Dev
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS

PDF: Final = "application/pdf"


def mint(dev: Dev, reference: str, max_bytes: int = 100) -> dict[str, Any]:
    """Return a minted upload."""
    facts = dev.facts
    answer = httpx.post(
        f"{facts['base_url']}/documents/upload-url",
        headers={"Authorization": f"Bearer {facts['live_key']}"},
        json={
            "entity_id": facts["entity_id"],
            "partner_claim_id": reference,
            "filename": "a.pdf",
            "mime_type": PDF,
            "max_bytes": max_bytes,
        },
        timeout=PATIENCE_SECONDS,
        verify=NO_TLS,
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


def put(url: str, headers: dict[str, str], content: str) -> tuple[str, str]:
    """Upload with curl; return the status and the code of the store's refusal."""
    words = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    done = subprocess.run(
        ["curl", "-sS", "-X", "PUT", *words, "--data-binary", content, "-w", "\n%{http_code}", url],
        capture_output=True,
        text=True,
        check=True,
    )
    body, _, status = done.stdout.rpartition("\n")
    code = re.search("<Code>(.*)</Code>", body)
    return status, code[1] if code else ""
