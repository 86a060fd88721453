"""What was set aside, though this service wrote it, can be done again by whoever did it."""

from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest

from service.evidence.set_aside import TakeBackRefused, newest_set_aside, take_back
from service.facts.claims import claim_stream
from service.facts.entities import StageMailsChosen
from service.ledger.sequencer import Sequencer
from service.ledger.transaction import AppendConflict, PublicIdTaken
from service.ledger.writing import Append
from service.onboardings.commands import PURPOSE
from tests.document_store import documents_on
from tests.ledger.appending import append, approved
from tests.ledger.raw_events import RawEvent, write_foreign
from tests.ledger.samples import CAUSE
from tests.tables import every_row
from tests.world import STAFF, settings_for, world_on

HIDE = "select live.set_aside_events(array_agg(append_id)) from live.pending"
ONBOARDING = {"partner_user_id": "u", "company_name": "New", "user_email": "a@example.com"}


@pytest.fixture
async def world(database_url, tmp_path):
    """Return a service whose events wait for their numbers."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as one:
        yield one


@pytest.fixture
async def partner(world):
    """Return an approved partner, whose events of accounts are numbered."""
    return await world.partner()


async def number(world):
    """Number what waits in live mode."""
    await Sequencer(world.service.modes["live"].ledger).number_committed()


async def test_a_claim_is_created_again(world, partner, owner):
    """Under its reference, by the next request; the one that is gone is listed no more."""
    entity_id = await partner.connected_entity()
    await number(world)
    gone = (await partner.claim(entity_id, "c1")).json()["claim_id"]
    owner.execute(HIDE)
    made = await partner.claim(entity_id, "c1")
    repeated = await partner.claim(entity_id, "c1")
    listed = await partner.call("GET", f"/claims?entity_id={entity_id}&limit=10")
    shown = await world.service.modes["live"].claims.show(made.json()["claim_id"])
    assert (made.status_code, repeated.status_code) == (201, 200)
    assert made.json()["claim_id"] == repeated.json()["claim_id"] != gone
    assert [one["claim_id"] for one in listed.json()["claims"]] == [made.json()["claim_id"]]
    assert shown.created.details is not None


async def test_an_onboarding_begins_again(partner, owner):
    """With another business, whose predecessor's name is gone from the read model."""
    first = await partner.call("POST", "/onboardings", json=ONBOARDING)
    owner.execute(HIDE)
    left = owner.execute("select count(*) from live.entities").fetchone()
    second = await partner.call("POST", "/onboardings", json=ONBOARDING)
    assert (first.status_code, left, second.status_code) == (201, (0,), 201)


async def test_a_connection_and_its_end_are_replaced(world, partner, owner):
    """By the next approval: until then its row says what is no longer so."""
    entity_id = await world.entity()
    await number(world)
    await partner.connect(entity_id)
    connections = world.service.modes["live"].connections
    await connections.disconnect(entity_id, partner.partner_id, CAUSE)
    owner.execute(HIDE)
    await partner.connect(entity_id)
    made = await partner.claim(entity_id, "c1")
    row = owner.execute("select version, disconnected_at from live.connections").fetchone()
    assert (made.status_code, row) == (201, (1, None))


async def a_business(world):
    """Return what adds a business, for whoever repeats it."""
    entities = world.service.modes["live"].entities
    return partial(entities.add, "Bakery", "a@example.com", None, STAFF, once="r1")


async def a_partner(world):
    """Return what adds a partner, for whoever repeats it."""
    return partial(world.service.partners.add, "Partner", "p@example.com", STAFF, once="r1")


async def a_key(world):
    """Return what issues a key to an approved partner, and returns its id."""
    partner_id = await approved_partner(world)
    issue = partial(world.service.partners.issue_key, partner_id, "test", STAFF, once="r1")

    async def issued():
        return (await issue()).key_id

    return issued


async def a_successor(world):
    """Return what issues a key in a key's place, and returns its id."""
    partner_id, partners = await approved_partner(world), world.service.partners
    old = await partners.issue_key(partner_id, "test", STAFF)
    await Sequencer(world.service.accounts).number_committed()

    async def rolled():
        return (await partners.roll_key(partner_id, old.key_id, timedelta(), STAFF)).key_id

    return rolled


async def approved_partner(world):
    """Return an approved partner, whose events are numbered."""
    partner_id = await world.service.partners.add("Partner", "p@example.com", STAFF)
    await world.service.partners.approve(partner_id, STAFF)
    await Sequencer(world.service.accounts).number_committed()
    return partner_id


@pytest.mark.parametrize("whose", [a_business, a_partner, a_key, a_successor])
async def test_what_has_its_id_from_a_reference_is_made_again(world, owner, whose):
    """Under the same id, which is kept for good."""
    make = await whose(world)
    made = await make()
    for ledger in ("live", "accounts"):
        owner.execute(HIDE.replace("live", ledger))
    assert await make() == made


async def test_a_key_that_is_issued_again_holds_though_its_predecessor_was_revoked(world, owner):
    """Its row is replaced, with the end that it had."""
    make = await a_key(world)
    key_id = await make()
    (partner_id,) = owner.execute("select partner_id from accounts.api_keys").fetchone()
    await world.service.partners.revoke_key(partner_id, key_id, STAFF)
    owner.execute(HIDE.replace("live", "accounts"))
    await make()
    row = owner.execute("select revoked_at, revoked_later from accounts.api_keys").fetchone()
    assert row == (None, False)


async def test_an_id_is_not_given_to_another_stream(world, owner):
    """Though what had it was set aside, as something of that stream was."""
    accounts, (one, another) = world.service.accounts, (uuid4(), uuid4())
    for stream, public_id in ((one, "ptn_8"), (another, "ptn_9")):
        await append(accounts, approved(stream, 0)._replace(public_ids=[public_id]))
    owner.execute(HIDE.replace("live", "accounts"))
    with pytest.raises(PublicIdTaken):
        await append(accounts, approved(another, 0)._replace(public_ids=["ptn_8"]))


async def test_its_documents_are_linked_again(database_url, tmp_path, store_credentials, owner):
    """An upload is linked to one claim, and the one that had it is gone."""
    async with documents_on(database_url, tmp_path, store_credentials, follow=False) as documents:
        partner, entity_id = await documents.world.connected()
        await number(documents.world)
        references = [await documents.uploaded(partner, entity_id, "c1") for _ in range(2)]
        answers = []
        for _ in range(2):
            answers.append(await partner.claim(entity_id, "c1", document_refs=references))
            owner.execute(HIDE)
    rows = owner.execute("select count(*) from live.claim_documents").fetchone()
    assert ([one.status_code for one in answers], rows) == ([201, 201], (0,))


NAMED = {
    "live.claim_list": ("ClaimCreated", "claim_id"),
    "live.entities": ("EntityRegistered", "entity_id"),
    "live.connect_links": ("ConnectLinkIssued", "link_id"),
    "live.claim_documents": ("DocumentsAttached", "document_id"),
    "accounts.partners": ("PartnerApplied", "partner_id"),
    "accounts.staff": ("StaffAdded", "staff_id"),
}
"""Tables whose rows go with the events that made them, and how such an event names its row."""
MORE_ROWS = """
insert into live.claim_documents
(claim_id, document_id, crc32c, generation, mime_type, size, storage_path)
select claim_id, 'doc_1', '', 1, '', 1, 'x' from live.claim_list;
insert into accounts.staff (staff_id, stream_id, added_at)
values ('stf_1', gen_random_uuid(), now())
"""


async def test_a_forged_event_removes_no_row(world, partner, owner):
    """It names one from a stream of its own, or from the row's, which goes on; it is set aside."""
    await partner.claim(await partner.connected_entity(), "c1")
    owner.execute(MORE_ROWS)
    for ledger in (world.service.modes["live"].ledger, world.service.accounts):
        await Sequencer(ledger).number_committed()
        forged = []
        for table, (topic, field) in NAMED.items():
            if not table.startswith(ledger.name):
                continue
            (row_id,) = owner.execute(f"select {field} from {table}").fetchone()  # noqa: S608 - ours
            state = f'{{"{field}":"{row_id}"}}'.encode()
            forged.append(RawEvent(uuid4(), 1, topic, state))
            made_by = f"select distinct originator_id from {ledger.name}.events where topic = %s"  # noqa: S608 - ours
            streams = owner.execute(made_by, [topic]).fetchall()
            forged += [RawEvent(stream, 9, topic, state) for (stream,) in streams]
        await write_foreign(ledger, *forged)
        await Sequencer(ledger).number_committed()
        aside = owner.execute(f"select count(*) from {ledger.name}.set_aside").fetchone()  # noqa: S608 - ours
        assert aside == (len(forged),)
    with every_row() as row:
        for table in NAMED:
            with row(table):
                assert owner.execute(f"select from {table}").rowcount == 1


async def test_the_key_of_a_stream_that_has_events_is_not_replaced(world, partner, owner):
    """Whatever a command brings: all that was encrypted under it would be lost."""
    live = world.service.modes["live"].ledger
    entity_id = await partner.connected_entity()
    await partner.claim(entity_id, "c1")
    keys = "select * from live.data_keys order by key_id"
    before = owner.execute(keys).fetchall()
    stream = claim_stream("live", 0, partner.partner_id, entity_id, "c1")
    event = StageMailsChosen(entity_id=entity_id, wanted=True)
    key = live.master_keys.new_data_key(stream)
    append = Append(stream, 9, [event], CAUSE, key, new_key=True)
    with pytest.raises(AppendConflict, match="data_keys_pkey"):
        async with live.transaction() as transaction:
            await transaction.append(append)
    assert owner.execute(keys).fetchall() == before


async def test_what_is_taken_back_has_its_rows_again(world, partner, owner):
    """As if nobody had hidden it: the claim is listed, and its repetition returns it."""
    entity_id = await partner.connected_entity()
    await number(world)
    made = (await partner.claim(entity_id, "c1", message="Hello")).json()["claim_id"]
    owner.execute(HIDE)
    live = world.service.modes["live"].ledger
    for one in reversed(await newest_set_aside(live)):
        await take_back(live, one.set_aside_id, "hidden", STAFF)
    listed = await partner.call("GET", f"/claims?entity_id={entity_id}&limit=10")
    repeated = await partner.claim(entity_id, "c1", message="Hello")
    assert [one["claim_id"] for one in listed.json()["claims"]] == [made]
    assert (repeated.status_code, repeated.json()["claim_id"]) == (200, made)


async def test_a_business_that_is_taken_back_uses_the_service_as_before(world, partner, owner):
    """Its onboarding was finished, as an event of another stream says, which nobody hid."""
    live = world.service.modes["live"]
    started = await partner.call("POST", "/onboardings", json=ONBOARDING)
    secrets = await live.ledger.secrets()
    token = secrets.link_token(PURPOSE, started.json()["onboarding_id"])
    _, entity_id, _ = await live.onboardings.complete(token, "req_1", actor="visitor")
    owner.execute(
        "select live.set_aside_events(array_agg(append_id)) from live.events"
        " where topic = 'EntityRegistered'"
    )
    (hidden,) = await newest_set_aside(live.ledger)
    await take_back(live.ledger, hidden.set_aside_id, "hidden", STAFF)
    again = await partner.call("POST", "/onboardings", json=ONBOARDING | {"partner_user_id": "v"})
    row = owner.execute("select entity_id, established from live.entities").fetchall()
    assert (row, again.status_code) == ([(entity_id, True)], 422)


async def test_a_row_that_is_there_still_keeps_nothing_from_being_taken_back(world, owner):
    """Such as that of an API key, whose stream has not lost all of its events."""
    partner_id, accounts = await approved_partner(world), world.service.accounts
    await world.service.partners.issue_key(partner_id, "test", STAFF)
    owner.execute(HIDE.replace("live", "accounts"))
    (hidden,) = await newest_set_aside(accounts)
    taken = await take_back(accounts, hidden.set_aside_id, "hidden", STAFF)
    assert (taken.topic, taken.taken_back_at is not None) == ("ApiKeyIssued", True)
    assert owner.execute("select count(*) from accounts.api_keys").fetchone() == (1,)


async def test_only_the_later_of_two_is_taken_back(world, partner, owner):
    """Where both were set aside: the key of the first is gone, and nobody could open it."""
    entity_id = await partner.connected_entity()
    await number(world)
    for _ in range(2):
        await partner.claim(entity_id, "c1")
        owner.execute(HIDE)
    live = world.service.modes["live"].ledger
    later, first = await newest_set_aside(live)
    with pytest.raises(TakeBackRefused, match="only the later one can be taken back"):
        await take_back(live, first.set_aside_id, "hidden", STAFF)
    assert (await take_back(live, later.set_aside_id, "hidden", STAFF)).topic == "ClaimCreated"
