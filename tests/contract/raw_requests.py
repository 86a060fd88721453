"""Requests as bytes, for tests that need a real socket."""

from tests.topology import HOST

CLOSE = "Connection: close"


def head(line: str, *headers: str) -> bytes:
    """Return the bytes of a request's head."""
    return "\r\n".join([line, f"Host: {HOST}", *headers, "", ""]).encode()
