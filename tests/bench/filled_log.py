"""A long log of claims, written as the service writes it: bound to it, and numbered."""

from collections.abc import Iterator, Sequence
from uuid import UUID, uuid4

import asyncpg

from service.app.bootstrap import Service
from service.app.settings import SERVE, Settings
from service.facts.claims import ClaimCreated, FirstMessagePosted
from service.ledger.event_macs import EventKeys
from service.ledger.events import Event, Meta
from service.ledger.ledger import Ledger
from tests.bench.stack import Stack

FILL_CLAIMS = 10_000
"""Written at a time."""
_NUMBER = """
insert into live.log (position, append_id, leaf_hash)
select position, append_id, live.leaf_hash(
    position, append_id, originator_id, originator_version, topic, state
)
from (
    select
        (select size from live.head) + row_number() over (order by append_id) as position, e.*
    from live.events as e
    where not exists (select from live.log as l where l.append_id = e.append_id)
) as waiting
"""
_HEAD = "update live.head set size = (select max(position) from live.log), tree = null"
_DETAILS = {
    "defendant": {"name": "Debtor", "address": {"street": "1 Example Street", "city": "Example"}},
    "invoices": [{"number": "INV-1", "total_amount_for_invoice": "10.00"}],
}


async def fill(stack: Stack, url: str, claims: int) -> None:
    """Write numbered claims with their first messages into the log, for customers in turn."""
    service = Service(Settings.from_environment(stack.environment(url), require=SERVE))
    ledger = service.modes["live"].ledger
    async with service.opened():
        keys = await ledger.event_keys()
    connection = await asyncpg.connect(url)
    actors = await connection.fetch("select partner_id, key_id from accounts.api_keys")
    meta = [_meta(service, *actor) for actor in actors]
    columns = ("originator_id", "originator_version", "topic", "state", "mac")
    for start in range(0, claims, FILL_CLAIMS):
        numbers = range(start, min(start + FILL_CLAIMS, claims))
        await connection.copy_records_to_table(
            "events",
            schema_name="live",
            columns=columns,
            records=_events(ledger, keys, numbers, meta),
        )
        await connection.copy_records_to_table(
            "public_ids", schema_name="live", records=((_claim_id(one),) for one in numbers)
        )
    for statement in (_NUMBER, _HEAD, "delete from live.pending"):
        await connection.execute(statement)
    await connection.close()


def _events(
    ledger: Ledger, keys: EventKeys, numbers: range, meta: Sequence[Meta]
) -> Iterator[tuple[UUID, int, str, bytes, bytes]]:
    key = ledger.master_keys.new_data_key(uuid4())
    for number in numbers:
        stream = uuid4()
        one = meta[number % len(meta)]
        for version, event in enumerate(_facts(number, f"{1 + number % len(meta):026}"), 1):
            topic = type(event).__name__
            state = ledger.codec.encode(stream, version, event, one, key)
            yield stream, version, topic, state, keys.mac(stream, version, topic, state)


def _meta(service: Service, partner_id: str, key_id: str) -> Meta:
    return Meta(service.clock(), f"partner:{partner_id}/{key_id}", "req_bench", "live")


def _claim_id(number: int) -> str:
    return f"clm_{number:026}"


def _facts(number: int, owner: str) -> tuple[Event, Event]:
    """Return the first two events of a claim."""
    claim_id, partner_id, entity_id = _claim_id(number), f"ptn_{owner}", f"ent_{owner}"
    created = ClaimCreated(
        claim_id=claim_id,
        partner_id=partner_id,
        entity_id=entity_id,
        partner_claim_id=f"case-{number}",
        partner_user_id="user-17",
        partner_invoice_ids=["INV-1"],
        fingerprint="0" * 64,
        details=_DETAILS,
    )
    message = FirstMessagePosted(
        claim_id=claim_id,
        message_id=f"msg_{number:026}",
        partner_id=partner_id,
        entity_id=entity_id,
        text="Please collect this claim. " * 5,
    )
    return created, message
