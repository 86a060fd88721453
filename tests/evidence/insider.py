"""Alterations by whoever has the signing key: hashed, proved and signed like anything else."""

import random
from collections.abc import Callable
from typing import Any

from tests.evidence.evidence_world import OTHER
from tests.evidence.memory_log import VALUES, MemoryLog


class Insider:
    """Draws alterations of a log, before its files are made."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._kinds: list[Callable[[MemoryLog], None]] = [
            *(self._member, self._member, self._lineage, self._lineage, self._column, self._origin),
            *(self._drop, self._swap, self._repeat, self._checkpoint, self._header, self._state),
        ]

    def alter(self, log: MemoryLog) -> None:
        """Alter a log somehow, once or twice."""
        for _ in range(self._draw.choice([1, 1, 2])):
            self._draw.choice(self._kinds)(log)

    def _replace(self, inner: dict[str, Any], *more: str) -> None:
        inner[self._draw.choice([*inner, *more])] = self._draw.choice(VALUES)

    def _data(self, log: MemoryLog, *, lineages: bool) -> dict[str, Any] | None:
        chosen = [
            one["state"]["data"]
            for one in log.events
            if isinstance(one["state"], dict)
            and isinstance(one["state"].get("data"), dict)
            and (one["topic"] == "LineageBegun") is lineages
        ]
        return self._draw.choice(chosen) if chosen else None

    def _member(self, log: MemoryLog) -> None:
        data = self._data(log, lineages=False)
        if data is not None:
            self._replace(data, "x")

    def _lineage(self, log: MemoryLog) -> None:
        data = self._data(log, lineages=True)
        if data is not None:
            self._replace(data, "previous", "shared_size")

    def _column(self, log: MemoryLog) -> None:
        if log.events:
            names = ["append_id", "originator_id", "originator_version", "topic"]
            event = self._draw.choice(log.events)
            other = self._draw.choice(log.events)
            name = self._draw.choice(names)
            event[name] = self._draw.choice([other[name], other[name], 0, 1, 2, "x"])

    def _state(self, log: MemoryLog) -> None:
        if log.events:
            event = self._draw.choice(log.events)
            if isinstance(event["state"], dict) and self._draw.random() < 0.5:
                meta = event["state"].get("meta")
                self._replace(meta if isinstance(meta, dict) and meta else event["state"])
            else:
                event["state"] = self._draw.choice(
                    ["", "7", "[]", "{}", '{"data":NaN}', '{"data":{"a":"\\ud800"},"meta":{}}']
                )

    def _drop(self, log: MemoryLog) -> None:
        if log.events:
            log.events.pop(self._draw.randrange(len(log.events)))
            self._number(log)

    def _swap(self, log: MemoryLog) -> None:
        self._draw.shuffle(log.events)
        self._number(log)

    def _repeat(self, log: MemoryLog) -> None:
        if log.events:
            log.events.append({**self._draw.choice(log.events)})
            self._number(log)

    def _origin(self, log: MemoryLog) -> None:
        texts = [one for one in VALUES if isinstance(one, str)]
        origins = [one for one in texts if "/lin_" in one and "\n" not in one]
        log.origin = self._draw.choice([*origins, "live/1", "live"])

    def _checkpoint(self, log: MemoryLog) -> None:
        kind = self._draw.randrange(4)
        if kind == 0:
            log.extension = self._draw.choice(["more\n", "a b\nc\n", "\n", "\x01\n"])
        elif kind == 1:
            log.key = OTHER
        else:
            log.checkpoint[self._draw.choice(["size", "root"])] = self._draw.choice(
                ["0", "1", "01", "-1", str(2**63), "x", "A" * 43 + "="]
            )

    def _header(self, log: MemoryLog) -> None:
        names = ["ledger", "from", "size", "root", "entity", "tree", "consistency", "claim_id"]
        names += ["older", "proof", "lineages", "epoch", "index", "before", "streams", "subject"]
        log.header[self._draw.choice(names)] = self._draw.choice(VALUES)

    def _number(self, log: MemoryLog) -> None:
        for position, event in enumerate(log.events, 1):
            event["position"] = position
