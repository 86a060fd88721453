"""The local store as an ASGI application: the XML and the JSON API on one origin."""

from contextlib import suppress

from service.cli.dev.gcs.disk import DiskStore
from service.cli.dev.gcs.http import (
    Body,
    Interrupted,
    Receive,
    Scope,
    Send,
    request_of,
    send_answer,
)
from service.cli.dev.gcs.json_side import JsonSide
from service.cli.dev.gcs.verifier import PublicKeyOf
from service.cli.dev.gcs.xml_side import XmlSide
from service.core.clock import Clock


class LocalStoreApp:
    """Plain ASGI: bodies must stream, paths must stay raw, and responses must be the cloud's."""

    def __init__(
        self, store: DiskStore, public_key_of: PublicKeyOf, token: str, clock: Clock
    ) -> None:
        """Take the store, the signer's key for PUTs, and the token for the JSON API."""
        self._xml = XmlSide(store, public_key_of, clock)
        self._json = JsonSide(store, token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        request, body = request_of(scope), Body(receive)
        with suppress(Interrupted):
            if request.raw_path.startswith(("/storage/v1/", "/download/storage/v1/")):
                await body.drain()
                answer = await self._json.answer(request)
            else:
                answer = await self._xml.answer(request, body)
            await send_answer(send, answer)


async def _lifespan(receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
