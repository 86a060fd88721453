"""A served local store with what its clients need, and a clock that can be moved."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import httpx
from google.cloud.storage import Bucket, Client
from google.oauth2.credentials import Credentials

from service.cli.dev.gcs.serving import LocalStore
from service.core.clock import system_clock
from service.storage.port import SignedUpload
from service.storage.signer import KeySigner

BUCKET = "test-documents"
MAX_BYTES = 1000


class MovableClock:
    """The machine's time plus `ahead`."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        """Return the moved time."""
        return system_clock() + self.ahead


@dataclass
class Served:
    """A served store with what its clients need."""

    store: LocalStore
    clock: MovableClock
    directory: Path
    signer: KeySigner
    http: httpx.AsyncClient

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.store.endpoint.rpartition(":")[2])

    @property
    def objects(self) -> Path:
        """Where the objects lie."""
        return self.directory / "objects"

    async def sign(
        self, name: str, mime_type: str = "application/pdf", max_bytes: int = MAX_BYTES
    ) -> SignedUpload:
        """Sign an upload."""
        return await self.signer.sign(name, mime_type, max_bytes)

    async def put(self, name: str, content: bytes, max_bytes: int = MAX_BYTES) -> httpx.Response:
        """Sign an upload and make it."""
        upload = await self.sign(name, max_bytes=max_bytes)
        return await self.http.put(upload.url, headers=upload.required_headers, content=content)

    def bucket(self, name: str = BUCKET) -> Bucket:
        """Return the bucket through the cloud's own client library."""
        credentials = Credentials(self.store.credentials.token)
        options = {"api_endpoint": self.store.endpoint}
        return Client("none", credentials=credentials, client_options=options).bucket(name)

    def files(self) -> list[str]:
        """Return the names of the files in the bucket's and the incoming folder."""
        folders = self.objects / BUCKET, self.objects / "incoming"
        return sorted(file.name for folder in folders for file in folder.iterdir())
