"""An open-loop generator: requests leave at their times, whether earlier ones are answered or not.

Latency counts from the time at which a request was due. Each answer is a line of the results:
number of the request, when it was due and when it was answered (monotonic seconds), status (0: the
connection broke, -1: nothing came), `Retry-After` or null, and the claim's id or null. The figures
of the generator itself are one line of JSON on stdout.

Arguments: port, file of requests, what ids begin with, requests a second, seconds, results.
"""

import asyncio
import json
import re
import sys
import time
from collections import deque
from pathlib import Path
from typing import TextIO

import uvloop

MARK = b"@" * 20
CONNECTIONS_MAX = 8_000
TICK_SECONDS = 0.002
LAST_SECONDS = 10.0
"""Answers are waited for so long after the last request."""
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_RETRY_AFTER = re.compile(rb"retry-after: *(\d+)", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection: *close\r", re.IGNORECASE)
_CLAIM_ID = re.compile(rb'"claim_id":"([^"]+)"')


class Sender(asyncio.Protocol):
    """One connection, idle or with one request under way."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._transport: asyncio.Transport
        self._request: tuple[int, float] | None = None
        self._answer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Be ready."""
        self._transport = transport

    def send(self, number: int, due: float, request: bytes) -> None:
        """Send a request."""
        self._request, self._answer = (number, due), b""
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Note an answer once it is whole."""
        self._answer += data
        head, blank, body = self._answer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or len(body) < int(length[1] if length else 0) or self._request is None:
            return
        retry_after, claim_id = _RETRY_AFTER.search(head), _CLAIM_ID.search(body)
        self._run.note(
            self._request,
            int(head[9:12]),
            int(retry_after[1]) if retry_after else None,
            claim_id[1].decode() if claim_id else None,
        )
        self._request = None
        if _CLOSES.search(head + b"\r"):
            self._transport.close()
        else:
            self._run.idle.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a request that was left without an answer."""
        del exc
        self._run.open -= 1
        if self._request is not None:
            self._run.note(self._request, 0, None, None)
            self._request = None
        elif self in self._run.idle:
            self._run.idle.remove(self)

    def give_up(self) -> None:
        """Close; a request under way is noted as one that nothing came for."""
        if self._request is not None:
            self._run.note(self._request, -1, None, None)
            self._request = None
        self._transport.abort()


class Run:
    """The schedule, the connections and the results."""

    def __init__(self, port: int, requests: list[bytes], prefix: bytes, results: TextIO) -> None:
        self._port = port
        self._parts = [request.partition(MARK) for request in requests]
        self._prefix = prefix
        self._results = results
        self._senders: set[Sender] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self.idle: deque[Sender] = deque()
        self.open = self.waiting = self.unsent = 0

    async def send(self, per_second: float, seconds: float) -> None:
        """Send what is due, until the time is over; then wait for the last answers."""
        began, number = time.monotonic(), 0
        total = int(per_second * seconds)
        while number < total:
            due_now = min(total, int((time.monotonic() - began) * per_second) + 1)
            while number < due_now:
                self._send_one(number, began + number / per_second)
                number += 1
            await asyncio.sleep(TICK_SECONDS)
        ends = time.monotonic() + LAST_SECONDS
        while self.waiting and time.monotonic() < ends:  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.01)
        for sender in list(self._senders):
            sender.give_up()
        await asyncio.sleep(0)

    def note(
        self, request: tuple[int, float], status: int, retry_after: int | None, claim: str | None
    ) -> None:
        """Write a result."""
        self.waiting -= 1
        line = [request[0], request[1], time.monotonic(), status, retry_after, claim]
        self._results.write(json.dumps(line) + "\n")

    def _send_one(self, number: int, due: float) -> None:
        head, mark, tail = self._parts[number % len(self._parts)]
        body = b"%s%s%012d%s" % (head, self._prefix, number, tail) if mark else head
        self.waiting += 1
        if self.idle:
            self.idle.pop().send(number, due, body)
        elif self.open < CONNECTIONS_MAX:
            self.open += 1
            task = asyncio.create_task(self._send_anew(number, due, body))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        else:
            self.waiting -= 1
            self.unsent += 1

    async def _send_anew(self, number: int, due: float, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, sender = await loop.create_connection(lambda: Sender(self), "127.0.0.1", self._port)
        except OSError:
            self.open -= 1
            self.note((number, due), 0, None, None)
            return
        self._senders.add(sender)
        sender.send(number, due, body)


def main(port: str, path: str, prefix: str, per_second: str, seconds: str, results: str) -> None:
    """Run the load and print what it cost."""
    requests = Path(path).read_bytes().split(b"\x1e")[:-1]
    with Path(results).open("w") as file:
        run = Run(int(port), requests, prefix.encode(), file)
        uvloop.run(run.send(float(per_second), float(seconds)))
    print(  # noqa: T201 - the figures are this process's answer
        json.dumps({"unsent": run.unsent, "cpu_seconds": round(time.process_time(), 2)})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
