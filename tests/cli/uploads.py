"""Uploads of the demonstration's partner, and a team with other storage settings."""

from typing import Any
from uuid import uuid4

import httpx
import psycopg

from tests.cli.team import Team
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.world import claim_body

PDF = "application/pdf"


class Upload:
    """An upload of the demonstration's partner, and its object as the store's owner sees it."""

    def __init__(self, team: Team, demo: dict[str, Any]) -> None:
        self.team, self.demo, self.reference = team, demo, f"case-{uuid4().hex}"
        answer = team.call(
            demo["live_key"],
            "POST",
            "/documents/upload-url",
            json={
                "entity_id": demo["entity_id"],
                "partner_claim_id": self.reference,
                "filename": "a.pdf",
                "mime_type": PDF,
            },
        )
        assert answer.status_code == 201, answer.text
        self.minted: dict[str, Any] = answer.json()
        self.path: str = self.minted["storage_path"]

    def put(self, content: bytes = b"%PDF-1.7") -> "Upload":
        """Upload the file."""
        answer = httpx.put(
            self.minted["upload_url"],
            headers=self.minted["required_headers"],
            content=content,
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        )
        assert answer.status_code == 200, answer.text
        return self

    def claim(self) -> httpx.Response:
        """Create a claim that refers to it."""
        ref = {"storage_path": self.path, "mime_type": PDF, "filename": "a.pdf"}
        body = claim_body(self.demo["entity_id"], self.reference, document_refs=[ref])
        return self.team.call(self.demo["live_key"], "POST", "/claims", json=body)

    def object(self, method: str = "GET") -> int:
        """Send a request for the object to the JSON API; return the status."""
        storage = self.team.dev.data_dir / "storage"
        token = (storage / "json-api-token").read_text().strip()
        name = self.path.replace("/", "%2F")
        url = f"{endpoint(self.team)}/storage/v1/b/claim-ledger-live/o/{name}"
        return httpx.request(
            method,
            url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        ).status_code

    def age(self) -> "Upload":
        """Make the upload eight days older."""
        with psycopg.connect(self.demo["database_url"]) as connection:
            connection.execute(
                "update live.uploads set minted_at = minted_at - interval '8 days'"
                " where storage_path = %s",
                [self.path],
            )
        return self


def endpoint(team: Team) -> str:
    """Return the store's origin."""
    return f"http://127.0.0.1:{(team.dev.data_dir / 'storage' / 'port').read_text().strip()}"


def elsewhere(team: Team, **given: str) -> dict[str, str]:
    """Return the environment of a team whose storage settings differ from the dev's."""
    settings = {
        "LIVE_BUCKET": "claim-ledger-live",
        "TEST_BUCKET": "claim-ledger-test",
        "STORAGE_KEY_FILE": str(team.dev.data_dir / "storage" / "service-account.json"),
        "STORAGE_ENDPOINT": endpoint(team),
    }
    return team.dev.environment(
        **{name: value for name, value in (settings | given).items() if value}
    )
