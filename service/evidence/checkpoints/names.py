"""Names of published checkpoints: `checkpoints/<origin>/<size, 20 digits>` and an ending."""

import re
from typing import Final

TOP: Final = "checkpoints/"
CLOSED: Final = b"closed\n"
"""The link from the last checkpoint of an origin that another lineage follows."""
BEGUN: Final = b"begun\n"
"""What says that an origin's first checkpoint was about to be stored."""
_NAME: Final = re.compile(
    rf"{TOP}(?P<origin>.+)/(?P<size>[0-9]{{20}})\.(?P<kind>txt|streams)", re.ASCII
)


def note_name(origin: str, size: int) -> str:
    """Return the name of a checkpoint's note; names of an origin sort by size."""
    return f"{TOP}{origin}/{size:020}.txt"


def leaves_name(origin: str, size: int) -> str:
    """Return the name of the leaf hashes since the checkpoint published before."""
    return f"{TOP}{origin}/{size:020}.leaves"


def streams_name(origin: str, size: int) -> str:
    """Return the name of the note of the streams that had begun by a checkpoint."""
    return f"{TOP}{origin}/{size:020}.streams"


def link_name(origin: str, size: int) -> str:
    """Return the name of the link from a checkpoint, 0 for the start, to the one after it.

    It is written once, and so decides which one that is: it holds that one's note, or CLOSED.
    """
    return f"{TOP}{origin}/{size:020}.next"


def begun_name(origin: str) -> str:
    """Return the name of what is published before an origin's first checkpoint is stored."""
    return f"{TOP}{origin}/begun"


def signature_name(origin: str, size: int, name: str, key_id: bytes) -> str:
    """Return the name of what a witness or a time-stamping authority signed of a checkpoint."""
    return f"{TOP}{origin}/{size:020}.signatures/{key_id.hex()}-{name.replace('/', '_')}"


def parsed(name: str) -> tuple[str, int] | None:
    """Return the origin and size of a note's name; None for any other name."""
    return _parsed(name, "txt")


def parsed_streams(name: str) -> tuple[str, int] | None:
    """Return the same of the name of a note of streams."""
    return _parsed(name, "streams")


def _parsed(name: str, kind: str) -> tuple[str, int] | None:
    found = _NAME.fullmatch(name)
    return (found["origin"], int(found["size"])) if found and found["kind"] == kind else None
