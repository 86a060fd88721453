"""A server in front of the service that fails by a seeded script, for client libraries.

`python -m tests.clients.fault_server --upstream http://127.0.0.1:8000` prints one line of JSON with
its `base_url`, and serves until it is terminated. It stands in front of the storage, too: an upload
URL leads through it. `GET /-/report` counts what was done, by fault and by endpoint.

Which attempts fail, and how, follows from the seed and the request alone: the method, the path, the
body, and how often it came before. So a run is the same whatever the order of its requests.
"""

import argparse
import asyncio
import hashlib
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import h11
import httpx

from service.core.errors import Refusal
from tests.patience import PATIENCE_SECONDS

UPLOAD: Final = ("cut_before", "cut_after", "cut_within", "slow", "internal_error", "bad_gateway")
"""Faults of an upload. All but the first come after the storage has answered."""
WRONG: Final = ("half_json", "html", "other_json", "empty")
"""Answers of 200 that are not what the document says, when the request has been answered."""
REFUSED: Final = ("rate_limited", "service_unavailable", "claim_conflict")
"""Refusals of requests that never reach the service."""
EVERY: Final = (*UPLOAD, *WRONG, "rate_limited", "service_unavailable", "unanswered_503")
"""Faults of every endpoint; in most of them what was asked is done, and the client is not told."""

_UPLOADS: Final = "/-/storage/"
_REPORT: Final = "/-/report"
_WRONG_BODIES: Final = {
    "half_json": b'{"claim_id": "clm_',
    "html": b"<html><body>Welcome to the portal</body></html>",
    "other_json": b'[{"claim_id": 17}]',
    "empty": b"",
}
_HOP_BY_HOP: Final = {
    "connection",
    "content-encoding",
    "content-length",
    "host",
    "keep-alive",
    "transfer-encoding",
}
Headers = list[tuple[str, str]]


class Cut(Exception):
    """The connection ends here; what is to be sent before is the argument."""


@dataclass
class Answer:
    """An answer to a client, which is cut off within if `cut`."""

    status: int
    headers: Headers
    body: bytes
    cut: bool = False


@dataclass
class FaultServer:
    """Forwards requests to `upstream`; of one's first `most` attempts a share of `rate` fails.

    A slow answer comes after `slow` seconds.
    """

    upstream: str
    seed: str
    rate: float
    most: int
    slow: float
    http: httpx.AsyncClient
    origin: str = ""
    faults: Counter[str] = field(default_factory=Counter[str])
    forwarded: Counter[str] = field(default_factory=Counter[str])
    _seen: Counter[str] = field(default_factory=Counter[str])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side ends it."""
        connection = h11.Connection(h11.SERVER)
        try:
            while await self._serve_one(connection, reader, writer):
                connection.start_next_cycle()
        except (Cut, OSError, h11.RemoteProtocolError):
            pass
        finally:
            writer.close()

    async def _serve_one(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        request, body = await _read(connection, reader, writer)
        if request is None:
            return False
        answer = await self._answer(request, body)
        head = h11.Response(
            status_code=answer.status,
            headers=[*answer.headers, ("Content-Length", str(len(answer.body)))],
        )
        sent = answer.body[: len(answer.body) // 2] if answer.cut else answer.body
        writer.write(connection.send(head) or b"")
        writer.write(connection.send(h11.Data(data=sent)) or b"")
        if answer.cut:
            await writer.drain()
            return False
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    async def _answer(self, request: h11.Request, body: bytes) -> Answer:
        target = request.target.decode()
        if target == _REPORT:
            report = {"faults": self.faults, "forwarded": self.forwarded}
            return Answer(200, [("Content-Type", "application/json")], json.dumps(report).encode())
        storage = target.startswith(_UPLOADS)
        fault = self._draw(
            request.method.decode(), "" if storage else target, body, storage=storage
        )
        self.faults[fault or "none"] += 1
        if fault == "cut_before":
            raise Cut
        if fault in REFUSED:
            return _refusal(fault, [])
        answer = await self._forward(request, body, target, storage=storage)
        if fault in _WRONG_BODIES:
            kind = "text/html" if fault == "html" else "application/json"
            return Answer(200, [("Content-Type", kind)], _WRONG_BODIES[fault])
        match fault:
            case "slow":
                await asyncio.sleep(self.slow)
            case "cut_after":
                raise Cut
            case "cut_within":
                answer.cut = True
            case "unanswered_503" | "internal_error":
                charged = [one for one in answer.headers if one[0].startswith("x-ratelimit-")]
                code = "internal_error" if fault == "internal_error" else "service_unavailable"
                return _refusal(code, charged)
            case "bad_gateway":
                return Answer(502, [("Content-Type", "text/html")], b"<h1>502 Bad Gateway</h1>")
            case _:
                pass
        return answer

    def _draw(self, method: str, target: str, body: bytes, *, storage: bool) -> str | None:
        digest = hashlib.sha256(b"\0".join([method.encode(), target.encode(), body])).hexdigest()
        attempt, self._seen[digest] = self._seen[digest], self._seen[digest] + 1
        chance = random.Random(f"{self.seed}/{digest}/{attempt}")  # noqa: S311 - a test's script
        if attempt >= self.most or chance.random() >= self.rate:
            return None
        if storage:
            return chance.choice(UPLOAD)
        claim = method == "POST" and target.endswith("/claims")
        return chance.choice((*EVERY, "claim_conflict") if claim else EVERY)

    async def _forward(
        self, request: h11.Request, body: bytes, target: str, *, storage: bool
    ) -> Answer:
        url = unquote(target.removeprefix(_UPLOADS)) if storage else self.upstream + target
        method = request.method.decode()
        path = "upload" if storage else urlsplit(target).path
        self.forwarded[f"{method} {path}"] += 1
        answer = await self.http.request(
            method, url, headers=_forwarded(request.headers), content=body
        )
        content = answer.content
        if "upload_url" in answer.text and answer.is_success and not storage:
            minted = answer.json()
            minted["upload_url"] = f"{self.origin}{_UPLOADS}{quote(minted['upload_url'], safe='')}"
            content = json.dumps(minted).encode()
        return Answer(answer.status_code, _forwarded(answer.headers.raw), content)


async def _read(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[h11.Request | None, bytes]:
    """Return the next request and its body; None where the client has ended the connection."""
    request, body = None, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                writer.write(connection.send(go_on) or b"")
            connection.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return request, body
        else:
            return None, b""


def _forwarded(headers: object) -> Headers:
    named = [(name.decode().lower(), value.decode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in named if name not in _HOP_BY_HOP]


def _refusal(code: str, more: Headers) -> Answer:
    refusal = Refusal(code)
    wait = [("Retry-After", "1")] if refusal.row.after == "header" else []
    headers = [("Content-Type", "application/json"), *wait, *more]
    return Answer(refusal.row.status, headers, json.dumps(refusal.envelope()).encode())


async def run(given: argparse.Namespace) -> None:
    """Serve, on a free port unless one is given."""
    limits = httpx.Limits(max_connections=64)
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, limits=limits, trust_env=False) as http:
        one = FaultServer(
            given.upstream.rstrip("/"), given.seed, given.rate, given.most, given.slow, http
        )
        listener = await asyncio.start_server(one.serve, "127.0.0.1", given.port)
        host, port = listener.sockets[0].getsockname()
        one.origin = f"http://{host}:{port}"
        print(json.dumps({"base_url": f"{one.origin}/v1"}), flush=True)  # noqa: T201 - for its starter
        await listener.serve_forever()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--upstream", required=True, help="origin of the service, such as http://127.0.0.1:8000")
    option("--port", type=int, default=0)
    option("--seed", default="1")
    option("--rate", type=float, default=0.5, help="share of attempts that fail")
    option("--most", type=int, default=4, help="of a request's attempts, how many may fail")
    option("--slow", type=float, default=2.0, help="seconds that a slow answer takes")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
