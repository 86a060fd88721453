"""An instance of every event of the catalogue, with a value in each field."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.facts.claims import Document
from service.ledger.events import Cause, Event, Meta

AT = datetime(2026, 3, 1, 10, 15, 30, 123000, tzinfo=UTC)
META = Meta(AT, "staff:test", "req_1", "live")
CAUSE = Cause("system:dev", "req_1")
STREAM = UUID(int=7)
CANARY = "canary-Zoë"

EVENTS: Sequence[type[Event]] = [*ACCOUNTS.values(), *PARTNER_LEDGER.values()]

_VALUES: dict[str, Any] = {
    "data_key": UUID(int=9),
    "shared_size": 3,
    "epoch": 3,
    "after": 3,
    "types": ["claim.created"],
    "checks": ["website", "register"],
    "secret_version": 2,
    "fingerprint_version": 2,
    "hash_version": 2,
    "event_key": 1,
    "set_aside_number": 5,
    "stream_version": 2,
    "sessions": 2,
    "details": {"defendant": {"name": CANARY, "address": {"postcode": CANARY}}},
    "partner_invoice_ids": ["INV-1", "INV-2"],
    "documents": [Document("doc_1", "entities/a.pdf", "application/pdf", 1, 2**60, "AAAAAA==")],
    "filenames": [f"{CANARY}.pdf", "b.pdf"],
    "expires_at": AT,
    "signs_from": AT,
    "effective_at": AT,
    "credential_id": b"\x00\xff",
    "public_key": b"\x00\xff",
    "secret_hash": b"\0\xff",
    "token_hash": b"\0\xfe",
    "magic_link_hash": b"\0\xfd",
    "wanted": True,
    "established": True,
    "mail_wanted": True,
    "return_link": True,
    "link_returned": True,
    "suppress_email": False,
}


def sample(cls: type[Event]) -> Event:
    """Return an event with a value in every field; personal ones hold the canary."""
    given = {
        name: _VALUES.get(name, CANARY if name in cls.personal else f"the-{name}")
        for name in cls.__struct_fields__
    }
    return cls(**given)


def plain(cls: type[Event]) -> Event:
    """Return an event with a value in every field but the personal ones: it needs no key."""
    return msgspec.structs.replace(sample(cls), **dict.fromkeys(cls.personal))
