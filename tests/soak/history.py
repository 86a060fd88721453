"""The history of a run: what each client asked for, when, and what it was answered."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.histories import Operation, faults

_CHECKED = {
    "create_claim": "create_claim",
    "list_claims": "list_claims",
    "disconnect": "disconnect",
    "reconnect": "connect",
}
"""The operations that the checker of histories knows, and their names there."""


class History:
    """Invocations and answers, each a dictionary, in the order in which they ended.

    `process` is the client, which has one request under way; `op` is what it asked for, of
    `partner`, `entity` and `key`; `start` and `end` are seconds of one monotonic clock; `status` is
    that of the answer, None where none came: it may have taken effect, then or later. An answer's
    `claim_id`, `already_existed` and `claims` (ids of a page) are there where it had them. The
    `documents` of a claim are the paths that it refers to; `key` of a `put` is such a path.
    """

    def __init__(self) -> None:
        self.operations: list[dict[str, Any]] = []

    @asynccontextmanager
    async def invoked(self, process: str, op: str, **of: Any) -> AsyncIterator[dict[str, Any]]:
        """Record an operation, whose `status` and more the block sets."""
        record = {"process": process, "op": op, **of, "start": time.monotonic(), "status": None}
        try:
            yield record
        finally:
            record["end"] = time.monotonic()
            self.operations.append(record)

    def write(self, path: Path) -> None:
        """Write one line of JSON for each operation."""
        with path.open("w") as file:
            file.writelines(json.dumps(one) + "\n" for one in self.operations)

    def faults(self) -> list[str]:
        """Return what the history shows that must never be (tests/histories.py)."""
        return faults(_operation(one) for one in self.operations if one["op"] in _CHECKED)


def _operation(record: dict[str, Any]) -> Operation:
    answered = record["status"] is not None
    return Operation(
        op=_CHECKED[record["op"]],
        partner=record["partner"],
        entity=record["entity"],
        key=record["key"],
        start=record["start"],
        end=record["end"] if answered else None,
        status=record["status"],
        claim_id=record.get("claim_id"),
        already_existed=record.get("already_existed"),
        claims=record.get("claims"),
        page=record.get("page_token"),
        next_page=record.get("next_page_token"),
    )
