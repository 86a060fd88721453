"""The one form of a path: every other way to write it is a path that does not exist.

A framework, a proxy and a person who writes a rule for one of them read `//metrics`, `/%6detrics`,
`/metrics/` and `/x/../metrics` each in their own way. Here they are all unknown.
"""

import re
from typing import Final
from urllib.parse import quote

_PLAIN: Final = re.compile(rb"/|(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)+")
"""Segments of characters that need no encoding, none of them empty, `.` or `..`."""
BYTES_MAX: Final = 2048
"""No path of ours is as long; the server takes heads of 32 KiB."""
_EMPTY_OR_DOTS: Final = frozenset({"", ".", ".."})


def is_canonical(path: str, raw: bytes) -> bool:
    """Return whether a path is written in the one way that we write it; `raw` is as it was sent."""
    if len(raw) > BYTES_MAX:
        return False
    if _PLAIN.fullmatch(raw):
        return True
    # Encoded again as our links are: each character that needs it, in capitals, and no other.
    if quote(path, safe="/").encode() != raw or not path.isprintable():
        return False
    return path.startswith("/") and _EMPTY_OR_DOTS.isdisjoint(path[1:].split("/"))
