"""Audit a whole log by its address, with aics-tlog alone: `audit_tiles.py URL PUBLIC_KEY`."""

import sys
import urllib.request

from aics_tlog import (
    HttpTileReader,
    audit_tiles,
    parse_checkpoint,
    parse_note,
    parse_vkey,
    verify_checkpoint,
)

url, public_key = sys.argv[1:]
with urllib.request.urlopen(f"{url}/checkpoint") as answer:  # noqa: S310 - a server of the test's
    note = parse_note(answer.read().decode())
found = verify_checkpoint(note, parse_vkey(public_key))
assert found.ok, found
head = parse_checkpoint(note.text)
audit_tiles(HttpTileReader(url, proxies={}), head.size, head.root)
print(head.size)  # noqa: T201 - what the test reads
