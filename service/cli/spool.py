"""Rows of an answer that may be too many for memory, kept in a file until they are printed."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any


class Spool:
    """Objects in the order in which they were added, in a file that is gone with its process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - see above
        self._count = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep an object."""
        self._file.write(json.dumps(row) + "\n")
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def lines(self) -> Iterator[str]:
        """Return each object as JSON, without a line's end."""
        self._file.seek(0)
        for line in self._file:
            yield line[:-1]

    def first(self, count: int) -> list[dict[str, Any]]:
        """Return the first objects."""
        return [json.loads(line) for line in islice(self.lines(), count)]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
