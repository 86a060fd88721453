"""Load on one loopback port: wrk where it is installed, otherwise our own generator."""

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MARK = "@" * 20
"""Stands in a request for an id of its own."""
_HERE = Path(__file__).parent


class Load(NamedTuple):
    """The result of one run. `refused`: answers that are not 2xx; `broken`: no answer."""

    requests: int
    seconds: float
    refused: int
    broken: int
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        """The answers per second."""
        return self.requests / self.seconds

    def checked(self) -> "Load":
        """Return self; raise if any answer was not the one being measured."""
        if self.refused or self.broken or not self.requests:
            raise RuntimeError(f"not every request was answered well: {self}")
        return self


def generator() -> str:
    """Return the name of the generator that runs."""
    return "wrk" if shutil.which("wrk") else "python"


def prepare(path: Path, requests: Sequence[bytes]) -> Path:
    """Write the requests to send in turn; MARK in one is replaced each time."""
    path.write_bytes(b"".join(request + b"\x1e" for request in requests))
    return path


def http(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    """Return the bytes of one request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def run_load(
    port: int, requests: Path, connections: int, seconds: int, *, check: bool = True
) -> Load:
    """Send requests over `connections` connections, one at a time on each (closed loop).

    With `check` it raises unless every answer is a success.
    """
    prefix = secrets.token_hex(4)
    if generator() == "wrk":
        command = [
            *("wrk", "--threads", "1", "--connections", str(connections)),
            *("--duration", str(seconds), "--timeout", "10s", "--script", str(_HERE / "load.lua")),
            *(f"http://127.0.0.1:{port}/", "--", str(requests), prefix),
        ]
    else:
        command = [
            *(sys.executable, str(_HERE / "python_load.py"), str(port), str(requests), prefix),
            *(str(connections), str(seconds)),
        ]
    said = subprocess.run(command, check=True, capture_output=True, timeout=seconds + 30)
    load = Load(**json.loads(said.stdout.splitlines()[-1]))
    return load.checked() if check else load
