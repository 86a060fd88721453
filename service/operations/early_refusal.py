"""The answer to what is refused before anything is done for it; it costs next to nothing."""

from collections.abc import Mapping

import msgspec
from litestar.types import Send

from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId
from service.http.responses import refusal_headers


class EarlyRefusal:
    """One refusal, encoded once."""

    def __init__(
        self,
        refusal: Refusal,
        docs_url: str,
        common: Mapping[str, str],
        clock: Clock,
        new_id: NewId,
    ) -> None:
        """Encode it; `common` are the headers of every answer."""
        self.refusal = refusal
        self._body = msgspec.json.encode(refusal.envelope())
        self._clock, self._new_id = clock, new_id
        fields = {
            **common,
            "Content-Type": "application/json",
            "Content-Length": str(len(self._body)),
            **refusal_headers(refusal, docs_url),
        }
        self._headers = [(name.lower().encode(), text.encode()) for name, text in fields.items()]

    async def send(self, send: Send) -> None:
        """Send the response."""
        request_id = self._new_id("req", self._clock()).encode()
        await send({
            "type": "http.response.start",
            "status": self.refusal.row.status,
            "headers": [*self._headers, (b"x-request-id", request_id)],
        })  # fmt: skip
        await send({"type": "http.response.body", "body": self._body, "more_body": False})
