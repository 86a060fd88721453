"""Appending and reading in transactions of their own, for tests of the ledger of accounts."""

from service.facts.catalogue import ACCOUNTS
from service.ledger.writing import Append
from tests.ledger.samples import CAUSE, plain, sample

APPROVED = plain(ACCOUNTS["PartnerApproved"])
APPLIED = sample(ACCOUNTS["PartnerApplied"])


async def append(ledger, *appends):
    """Append in a transaction of its own."""
    async with ledger.transaction() as transaction:
        return await transaction.append(*appends)


async def read(ledger, stream):
    """Read one stream."""
    async with ledger.transaction() as transaction:
        return await transaction.read(stream)


def approved(stream, expected_version, count=1):
    """Return an append of events without personal fields, which change no row of a new stream."""
    return Append(stream, expected_version, [APPROVED] * count, CAUSE)


def applied(ledger, stream, *public_ids):
    """Return an append with personal fields, and their key."""
    key = ledger.master_keys.new_data_key(stream)
    return Append(stream, 0, [APPLIED], CAUSE, key, new_key=True, public_ids=public_ids)


async def add_event_key(service):
    """Draw the next event key, which the log does not record; return its id."""
    await service.secrets.get()  # an installation that nobody has used has none
    async with service.accounts.database.writes.connection() as connection:
        key_id, _ = await service.secrets.add_event_key(connection)
    return key_id
