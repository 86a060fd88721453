"""Stored events of every version in the catalogue; the corpus only ever grows.

`<Topic>.jsonl` has a line an event as it lies in a ledger: its state byte for byte, and the data
key of its sealed fields (made up, as all of it). A line never changes once it is here: SHA256SUMS
has a hash of each. `expected/<Topic>.jsonl` says beside each line what it is read as today, with
its key and with the key destroyed; that changes where a new version of a topic reads old events
anew.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.ledger.codec import Codec, stored_form
from service.ledger.encryption import BOX_VERSION, DataKey, MasterKeys
from service.ledger.events import Event, Meta
from tests.ledger.samples import META, STREAM, sample

DIRECTORY = Path(__file__).parent
SUMS = DIRECTORY / "SHA256SUMS"
CATALOGUES = {"accounts": ACCOUNTS, "live": PARTNER_LEDGER}
KEY = MasterKeys([bytes(32)]).new_data_key(STREAM)


class Line(msgspec.Struct, frozen=True):
    """An event as stored in a ledger; `data_key` decrypts its sealed fields, if it has any."""

    ledger: str
    stream: UUID
    version: int
    topic: str
    class_version: int
    state: str
    data_key: bytes | None = None

    def read(self, *, erased: bool) -> tuple[Event, Meta]:
        """Return what our codec reads; `erased`: with the key destroyed."""
        state = self.state.encode()
        sealed = stored_form(state).sealed
        key_id = sealed and sealed.key
        key = None
        if key_id is not None and self.data_key is not None and not erased:
            key = DataKey(key_id, self.data_key, b"", "")
        codec = Codec(self.ledger, CATALOGUES[self.ledger])
        return codec.decode(self.stream, self.version, self.topic, state, key)

    def expected(self) -> dict[str, Any]:
        """Return both readings as JSON."""
        readings = {name: self.read(erased=name == "erased") for name in ("open", "erased")}
        return {name: msgspec.to_builtins(event) for name, (event, _) in readings.items()} | {
            "meta": msgspec.to_builtins(readings["open"][1])
        }


def stored() -> list[tuple[str, bytes]]:
    """Return every line of the corpus under its name, `<Topic>.jsonl:<number from 1>`."""
    return [
        (f"{path.name}:{number}", raw)
        for path in sorted(DIRECTORY.glob("*.jsonl"))
        for number, raw in enumerate(path.read_bytes().splitlines(), 1)
    ]


def lines() -> dict[str, Line]:
    """Return every line, decoded."""
    return {name: msgspec.json.decode(raw, type=Line) for name, raw in stored()}


def expectations() -> dict[str, Any]:
    """Return what each line is read as."""
    return {
        f"{path.name}:{number}": msgspec.json.decode(raw)
        for path in sorted((DIRECTORY / "expected").glob("*.jsonl"))
        for number, raw in enumerate(path.read_bytes().splitlines(), 1)
    }


def sums() -> str:
    """Return the expected content of SHA256SUMS."""
    return "".join(f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in stored())


def missing() -> list[tuple[str, type[Event]]]:
    """Return the topics whose present version the corpus lacks, each with its ledger.

    It also lacks a topic whose present version has a field that no line of it has, and one whose
    personal fields are in no box of the present version.
    """
    known: dict[tuple[str, int], set[str]] = {}
    for line in lines().values():
        sealed = stored_form(line.state.encode()).sealed
        if sealed is not None and sealed.version < BOX_VERSION:
            continue
        fields = set(msgspec.to_builtins(line.read(erased=False)[0]))
        known.setdefault((line.topic, line.class_version), set()).update(fields)
    every = {
        topic: (ledger, cls)
        for ledger, catalogue in reversed(CATALOGUES.items())
        for topic, cls in catalogue.items()
    }
    return [
        (ledger, cls)
        for topic, (ledger, cls) in every.items()
        if not known.get((topic, cls.class_version), set()).issuperset(cls.__struct_fields__)
    ]


def written(ledger: str, cls: type[Event]) -> Iterator[Line]:
    """Return new lines of a topic from the codec: one with every field, one with the fewest."""
    for version, event in enumerate(_samples(cls), 3):
        state = Codec(ledger, {}).encode(STREAM, version, event, META, KEY)
        sealed = stored_form(state).sealed is not None
        yield Line(
            *(ledger, STREAM, version, cls.__name__, cls.class_version, state.decode()),
            KEY.key if sealed else None,
        )


def _samples(cls: type[Event]) -> Sequence[Event]:
    full = sample(cls)
    optional = len(cls.__struct_defaults__)
    required = cls.__struct_fields__[: len(cls.__struct_fields__) - optional]
    bare = cls(**{name: getattr(full, name) for name in required})
    return [full] if bare == full else [full, bare]
