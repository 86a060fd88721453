"""The load generator where there is no wrk: prepared bytes, raw connections, one process.

Arguments: port, file of requests, what ids begin with, connections, seconds.
"""

import asyncio
import json
import re
import sys
import time
from itertools import count
from pathlib import Path

import uvloop

MARK = b"@" * 20
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Sender(asyncio.Protocol):
    """One connection, which sends its next request when the last one is answered."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._answer = b""
        self._sent_at = 0.0
        self._left = -1

    def connection_made(self, transport) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Count an answer once it is whole."""
        if self._left < 0:
            self._answer += data
            head, blank, body = self._answer.partition(b"\r\n\r\n")
            if not blank:
                return
            length = _LENGTH.search(head)
            self._left = int(length[1] if length else 0)
            data = body
        self._left -= len(data)
        if self._left <= 0:
            self._run.note(self._answer[9:10] == b"2", time.perf_counter() - self._sent_at)
            self._send()

    def connection_lost(self, _error) -> None:
        """Count a request that was left without an answer."""
        self._run.broken += not self._run.over

    def _send(self) -> None:
        if self._run.over:
            self._transport.close()
            return
        self._answer, self._left, self._sent_at = b"", -1, time.perf_counter()
        self._transport.write(self._run.next_request())


class Run:
    """The requests and figures of all connections."""

    def __init__(self, requests: list[bytes], prefix: bytes) -> None:
        self._parts = [request.partition(MARK) for request in requests]
        self._prefix = prefix
        self._numbers = count()
        self.latencies: list[float] = []
        self.refused = self.broken = 0
        self.over = False

    def next_request(self) -> bytes:
        """Return the next request with its mark replaced."""
        number = next(self._numbers)
        head, mark, tail = self._parts[number % len(self._parts)]
        return b"%s%s%012d%s" % (head, self._prefix, number, tail) if mark else head

    def note(self, good: bool, seconds: float) -> None:
        """Count an answer."""
        self.latencies.append(seconds)
        self.refused += not good


async def main(run: Run, port: str, connections: str, seconds: str) -> None:
    """Run the load and print the figures as one line of JSON."""
    loop, started = asyncio.get_running_loop(), time.perf_counter()
    for _ in range(int(connections)):
        await loop.create_connection(lambda: Sender(run), "127.0.0.1", int(port))
    await asyncio.sleep(int(seconds))
    elapsed, ordered, run.over = time.perf_counter() - started, sorted(run.latencies), True
    print(  # noqa: T201 - the figures are this process's answer
        json.dumps(
            {
                "requests": len(ordered),
                "seconds": elapsed,
                "refused": run.refused,
                "broken": run.broken,
                "p50_ms": ordered[len(ordered) // 2] * 1000,
                "p99_ms": ordered[len(ordered) * 99 // 100] * 1000,
            }
        )
    )


if __name__ == "__main__":
    port, path, prefix, connections, seconds = sys.argv[1:]
    run = Run(Path(path).read_bytes().split(b"\x1e")[:-1], prefix.encode())
    uvloop.run(main(run, port, connections, seconds))
