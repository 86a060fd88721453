"""What a call's row says beyond its status: the faults of a refused call, and what a replay met.

It holds names of fields and our own messages about them, never a value that was sent.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from service.core.errors import Faults

OUTCOME_BYTES_MAX: Final = 1_000
"""Of what is kept of one call: a row stays small, whatever is wrong with a body."""
_JSON_BYTES: Final = 8
"""Of the punctuation around a message."""

_REPLAYED: Final = b"idempotent-replayed"
_MATCH: Final = b"idempotent-payload-match"

Headers = Mapping[bytes, bytes]


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """`fields` are messages by field, `form` those about the whole body; `more` were left out.

    `matches`: whether the body of a replay was that of the first call; None if not compared.
    """

    replayed: bool = False
    matches: bool | None = None
    fields: Mapping[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    form: list[str] = msgspec.field(default_factory=list[str])
    more: int = 0


def outcome_of(headers: Headers, faults: Faults | None) -> str | None:
    """Return what is kept of a call, as JSON; None where status and code say everything."""
    if faults is not None and any(faults):
        return _encoded(_kept(faults))
    if _REPLAYED in headers:
        match = headers.get(_MATCH)
        return _encoded(Outcome(True, None if match is None else match == b"true"))
    return None


def read_outcome(stored: str | None) -> Outcome:
    """Return what was kept of a call."""
    return Outcome() if stored is None else msgspec.json.decode(stored, type=Outcome)


def _kept(faults: Faults) -> Outcome:
    fields: dict[str, list[str]] = {}
    form: list[str] = []
    more, room = 0, OUTCOME_BYTES_MAX - len(_encoded(Outcome(more=2**63 - 1)))
    for name, message in _messages(faults):
        room -= len(name.encode()) + len(message.encode()) + _JSON_BYTES
        if room < 0:
            more += 1
        elif name:
            fields.setdefault(name, []).append(message)
        else:
            form.append(message)
    return Outcome(fields=fields, form=form, more=more)


def _messages(faults: Faults) -> Iterator[tuple[str, str]]:
    for name, messages in faults.fields.items():
        yield from ((name, message) for message in messages)
    yield from (("", message) for message in faults.form)


def _encoded(outcome: Outcome) -> str:
    return msgspec.json.encode(outcome).decode()
