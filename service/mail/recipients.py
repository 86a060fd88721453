"""How many mails a mailbox gets a day, from one partner and from all: nobody's mail is a weapon.

Counted in the ledger's database, in the transaction that sends: no process counts for itself.
What is told of live keys and return URLs is counted by itself, and so is what is told of who has
access: no noise silences either.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, get_args

from service.core.ids import stream_id
from service.ledger.database import Pool, always
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import lock_number

PERIOD: Final = timedelta(days=1)
ALL_MAX: Final = 6
"""Mails that a mailbox gets in a period. A business finishes one onboarding, so few are of use."""
PARTNER_MAX: Final = 3
"""Of them, those that one partner caused: no partner alone keeps others from reaching anybody."""
SHARED_MAX: Final = 3
"""After so many of them a partner gets one through, its first: nor do two or three together."""

Kind = Literal["any", "key", "access"]
"""What is counted together: mails about live keys and where customers return, about who has access,
and any other."""
KINDS: Final[Sequence[Kind]] = get_args(Kind)


class _Limits(NamedTuple):
    all: int
    partner: int
    shared: int


FORGET_ROWS_MAX: Final = 1_000
FORGET_SECONDS: Final = 600.0
"""How often old rows are deleted."""
KEY_LIMITS: Final = _Limits(all=20, partner=10, shared=10)
"""As many mails about live keys say what there is to say; more of them would hide one."""
_LIMITS: Final = {
    "any": _Limits(ALL_MAX, PARTNER_MAX, SHARED_MAX),
    "key": KEY_LIMITS,
    "access": KEY_LIMITS,
}

Admission = Literal["admitted", "busy", "withheld"]
"""`busy`: another mail to the same mailbox is being sent."""

_SQL = queries("service.mail")


async def admit(
    transaction: Transaction,
    message_id: str,
    partner_id: str,
    recipient: str,
    now: datetime,
    kind: Kind = "any",
) -> Admission:
    """Count a mail to a mailbox (`Secrets.lookup_recipient`), unless it has had enough.

    A mail is counted once, however often it is tried.
    """
    # Nobody waits for another's delivery, which may take as long as a mail server likes.
    lock = lock_number(stream_id("mail-recipient", recipient))
    held = await transaction.fetchrow(_SQL.recipient_try_lock, lock)
    if held is None or not held["held"]:
        return "busy"
    # A statement of its own: it has to see what was committed before the lock was free.
    row = await transaction.fetchrow(
        _SQL.recipient_admit,
        message_id,
        partner_id,
        counted_by(recipient, kind),
        now,
        now - PERIOD,
        *_LIMITS[kind],
    )
    return "admitted" if row is not None and row["admitted"] else "withheld"


async def forget_old(outbox: Pool, now: datetime) -> int:
    """Delete what was counted before the period, a bounded number; return how many rows."""
    row = always(await outbox.fetchrow(_SQL.recipient_forget, now, PERIOD, FORGET_ROWS_MAX))
    return row["deleted"]


def counted_by(recipient: str, kind: Kind) -> bytes:
    """Return what a mailbox's mails of a kind are counted by."""
    mailbox = bytes.fromhex(recipient)
    return mailbox if kind == "any" else hashlib.sha256(kind.encode() + mailbox).digest()
