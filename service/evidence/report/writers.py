"""Reports as files: NDJSON and CSV. Each is written line by line, whatever its length."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

import msgspec

from service.core.clock import timestamp
from service.core.csv_lines import cell, csv_lines
from service.evidence.report.lines import LogPart, Period, ReportLine, ReportSubject

FORMAT: Final = "claim-ledger report v1"
COLUMNS: Final = (
    *("ledger", "position", "at", "event", "meaning", "actor", "actor_name", "request_id"),
    *("data", "personal"),
)


class Cover(NamedTuple):
    """What a report is about, and when it was made."""

    subject: ReportSubject
    name: str | None
    period: Period
    made_at: datetime


class Proof(NamedTuple):
    """The evidence for the lines of a ledger: a part of its log, and a signed checkpoint of that.

    `note` is None if the part has no events, and so needs no evidence.
    """

    part: LogPart
    events: int
    note: str | None


class Writer(Protocol):
    """Writes a report."""

    def line(self, line: ReportLine) -> None:
        """Write an event."""
        ...

    def end(self, proofs: Sequence[Proof]) -> None:
        """Write what the lines rest on."""
        ...


class NdjsonWriter:
    """A header, a line for each event, and a last line with the checkpoints."""

    def __init__(self, out: BinaryIO, cover: Cover) -> None:
        """Write the header."""
        self._out = out
        self._write(
            {
                "format": FORMAT,
                cover.subject.field: cover.subject.id,
                "name": cover.name,
                "from": timestamp(cover.period.since),
                "until": timestamp(cover.period.until),
                "made_at": timestamp(cover.made_at),
            }
        )

    def line(self, line: ReportLine) -> None:
        """Write an event."""
        at = None if line.at is None else timestamp(line.at)
        self._write(line._asdict() | {"at": at})

    def end(self, proofs: Sequence[Proof]) -> None:
        """Write the checkpoints."""
        rests_on = [
            {
                "ledger": one.part.ledger,
                "after_position": one.part.after,
                "last_position": one.part.last,
                "events": one.events,
                "checkpoint": one.note,
            }
            for one in proofs
        ]
        self._write({"rests_on": rests_on})

    def _write(self, fields: dict[str, Any]) -> None:
        self._out.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")


class CsvWriter:
    """A table for a spreadsheet, without formulas. It does not contain the checkpoints."""

    def __init__(self, out: BinaryIO, _cover: Cover) -> None:
        """Write the names of the columns."""
        self._out = out
        self._out.write(("\ufeff" + csv_lines([COLUMNS])).encode())

    def line(self, line: ReportLine) -> None:
        """Write an event."""
        fields = line._asdict() | {
            "position": str(line.position),
            "data": msgspec.json.encode(line.data).decode(),
            "personal": ", ".join(f"{name}: {state}" for name, state in line.personal.items()),
        }
        self._out.write(csv_lines([[cell(fields[name]) for name in COLUMNS]]).encode())

    def end(self, proofs: Sequence[Proof]) -> None:
        """Write nothing more: who needs proof takes one of the other formats."""
