"""A transport that gives scripted answers, and keeps the requests."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx2
from claim_ledger_client import Client, Retries
from claim_ledger_client.models import EventData

KEY = "pk_live_ptn_1.key_1.sEcReTsEcReT"
BASE_URL = "https://api.example.com/v1"
LIMITED = {"X-RateLimit-Limit": "120"}

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "evt_1",
    "source": BASE_URL,
    "type": "claim.created",
    "subject": "clm_1",
    "time": "2026-03-01T10:15:30.123Z",
    "datacontenttype": "application/json",
    "sequence": "1",
    "data": dict.fromkeys(EventData.__struct_fields__) | {"claim_id": "clm_1"},
}

Step = httpx2.Response | Exception


def answer(status: int, body: Any, **headers: str) -> httpx2.Response:
    """Return an answer: one in JSON has a request id, as the API's have, and one of bytes none."""
    named = {} if isinstance(body, bytes) else {"X-Request-Id": "req_1"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.Response(status, headers=named, content=content)


def refusal(status: int, code: str, headers: dict[str, str] | None = None) -> httpx2.Response:
    """Return an error envelope."""
    content = json.dumps({"error": "E", "code": code, "message": "No."}).encode()
    return httpx2.Response(status, headers=headers, content=content)


class Script:
    """Answers in their order, and fails a test that asks for more; `sent` are the requests."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.sent: list[httpx2.Request] = []
        self._steps: Iterator[Step] = iter(steps)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        self.sent.append(request)
        step = next(self._steps, None)
        assert step is not None, f"{request.method} {request.url.path} after the last answer"
        if isinstance(step, Exception):
            raise step
        return step

    @property
    def bodies(self) -> list[bytes]:
        """What was sent."""
        return [request.content for request in self.sent]


def scripted(*steps: Step, make: Callable[..., Any] = Client, **more: Any) -> tuple[Any, Script]:
    """Return a client that gets these answers and waits for nothing, and its script."""
    script = Script(steps)
    retries = more.pop("retries", Retries(first_wait_seconds=0))
    transport = httpx2.MockTransport(script)
    return make(KEY, base_url=BASE_URL, retries=retries, transport=transport, **more), script
