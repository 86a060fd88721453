"""The ledger in memory does what the one on PostgreSQL does, as far as commands can tell."""

from datetime import timedelta
from uuid import uuid4

import msgspec
import pytest

from service.claims.wire import ClaimRequest
from service.core.errors import Refusal
from service.facts.caller import Caller
from service.facts.catalogue import ACCOUNTS
from service.ledger.transaction import AppendConflict, PublicIdTaken
from service.ledger.writing import Append
from service.onboardings.wire import Confirmed, OnboardingRequest
from service.sandbox.commands import SandboxCommands
from service.sandbox.fixtures import fixture_ids
from tests.ledger.appending import APPLIED, append, applied, approved, read
from tests.ledger.samples import CAUSE, sample
from tests.memory_ledger import memory_service
from tests.world import STAFF, claim_body, service_on, settings_for

ADDED = msgspec.structs.replace(sample(ACCOUNTS["MemberAdded"]), email_hash="00" * 32)


@pytest.fixture
async def in_memory(tmp_path):
    """Return a service in memory."""
    return memory_service(settings_for("postgresql://nobody@127.0.0.1:1/none", tmp_path))


@pytest.fixture
async def on_postgresql(database_url, tmp_path):
    """Return a service on PostgreSQL."""
    async with service_on(settings_for(database_url, tmp_path)) as one:
        yield one


@pytest.fixture(params=["in_memory", pytest.param("on_postgresql", marks=pytest.mark.server)])
def service(request):
    """Return the parts, on either ledger."""
    return request.getfixturevalue(request.param)


async def test_streams(accounts):
    """Versions in order, append_ids that grow, and whether a stream has begun."""
    stream = uuid4()
    async with accounts.transaction() as transaction:
        assert not await transaction.exists(stream)
    written = await append(accounts, approved(stream, 0, 2))
    written += await append(accounts, approved(stream, 2))
    assert await read(accounts, stream) == written
    assert [one.version for one in written] == [1, 2, 3]
    assert {one.meta.actor for one in written} == {CAUSE.actor}
    assert written == sorted(written, key=lambda one: one.append_id)
    async with accounts.transaction() as transaction:
        assert await transaction.exists(stream)
        assert abs(await transaction.now() - written[0].meta.at) < timedelta(days=1)


async def test_a_conflict_leaves_nothing(accounts):
    """Of several appends none is kept: no event, public id, key or row."""
    taken, free = uuid4(), uuid4()
    await append(accounts, approved(taken, 0))
    with pytest.raises(AppendConflict):
        await append(accounts, applied(accounts, free, "ptn_free"), approved(taken, 0))
    assert (await read(accounts, free), len(await read(accounts, taken))) == ([], 1)
    with pytest.raises(AppendConflict):
        await append(accounts, approved(taken, 0))
    async with accounts.transaction() as transaction:
        assert await transaction.data_keys([free]) == {}
    (recorded,) = await append(accounts, applied(accounts, free, "ptn_free"))
    assert recorded.event == APPLIED


async def test_a_failed_transaction_leaves_nothing(accounts):
    """What was appended before the failure is taken back."""
    stream = uuid4()

    async def fail():
        async with accounts.transaction() as transaction:
            await transaction.append(applied(accounts, stream, "ptn_1"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await read(accounts, stream) == []
    await append(accounts, applied(accounts, stream, "ptn_1"))


async def test_a_public_id_can_be_drawn_once(accounts):
    """A taken id is told apart from a conflict."""
    await append(accounts, approved(uuid4(), 0)._replace(public_ids=["ptn_1"]))
    stream = uuid4()
    with pytest.raises(PublicIdTaken):
        await append(accounts, approved(stream, 0)._replace(public_ids=["ptn_1"]))
    assert await read(accounts, stream) == []


async def test_a_command_decides_again_after_a_conflict(accounts):
    """`decide` runs the attempt again on what came first."""
    stream, seen = uuid4(), []

    async def attempt(transaction):
        seen.append(len(await transaction.read(stream)))
        if len(seen) == 1:
            await append(accounts, approved(stream, 0))
        return await transaction.append(approved(stream, seen[-1]))

    (recorded,) = await accounts.decide(attempt)
    assert (seen, recorded.version) == ([0, 1], 2)


async def test_personal_fields(accounts):
    """They are read with their key, under which later events are encrypted too."""
    stream = uuid4()
    await append(accounts, applied(accounts, stream))
    async with accounts.transaction() as transaction:
        (key,) = (await transaction.data_keys([stream])).values()
        assert await transaction.data_keys([uuid4()]) == {}
    await append(accounts, Append(stream, 1, [ADDED], CAUSE, key))
    assert [one.event for one in await read(accounts, stream)] == [APPLIED, ADDED]


async def test_partners_and_their_people(service):
    """Applications, members, settings and decisions, as commands and their look-ups see them."""
    partners, people = service.partners, service.partner_list

    def apply(email):
        return partners.apply(company="Co", contact_name="Z", use="U", email=email, cause=STAFF)

    hashed = (await service.secrets.get()).lookup_email("dev@example.com")
    partner_id = await apply("Dev@example.com")
    with pytest.raises(Refusal, match="application_pending"):
        await apply("dev@example.com")
    assert not await people.is_approved(partner_id)
    await partners.approve(partner_id, STAFF)
    assert await people.is_approved(partner_id)
    await partners.change_settings(partner_id, STAFF, return_link=True)
    await partners.add_member(partner_id, "two@example.com", STAFF)
    (row,) = await people.partners_of(hashed)
    member = await people.member(partner_id, hashed)
    assert (row["status"], member["return_link"], member["suppress_email"]) == (
        *("approved", True),
        False,
    )
    assert len(await people.members(partner_id)) == 2
    await partners.remove_member(partner_id, member["member_id"], STAFF)
    assert await people.member(partner_id, hashed) is None
    assert await people.partners_of(hashed) == []
    assert await apply("dev@example.com") != partner_id


async def test_claims_and_connections(service):
    """Every outcome of creating a claim that rests on what the ledger holds."""
    live = service.modes["live"]
    partner_id = await service.partners.add("Partner", "partner@example.com", STAFF)
    await service.partners.approve(partner_id, STAFF)
    entity_id = await live.entities.add("Business", "owner@example.com", None, STAFF)
    caller = Caller(partner_id, "key_1", "live", 0, False, False, "req_1")

    async def create(reference="case-1", entity_id=entity_id, **more):
        body = claim_body(entity_id, reference, **more)
        return await live.claims.create(caller, msgspec.convert(body, ClaimRequest))

    async def connect():
        url = (await live.connections.issue_link(caller, "u", None)).connect_url
        token = url.rpartition("/")[2]
        assert await live.connections.approve(token, entity_id, STAFF) == partner_id
        with pytest.raises(Refusal, match="connect_token_already_redeemed"):
            await live.connections.approve(token, entity_id, STAFF)

    with pytest.raises(Refusal, match="onboarding_unavailable"):
        await live.entities.add("Same", "owner@example.com", None, STAFF)
    with pytest.raises(Refusal, match="entity_not_found"):
        await create(entity_id="ent_none")
    with pytest.raises(Refusal, match="entity_not_owned"):
        await create()
    await connect()
    first, again, other = await create(), await create(), await create("case-2", message="unpaid")
    changed = await create(message="changed")
    assert first.claim_id == again.claim_id == changed.claim_id != other.claim_id
    assert [one.already_existed for one in (first, again, other)] == [False, True, False]
    await live.claims.move(first.claim_id, "negotiation", STAFF)
    assert (await live.claims.show(first.claim_id)).stage == "negotiation"
    await live.connections.disconnect(entity_id, partner_id, STAFF)
    with pytest.raises(Refusal, match="partner_disconnected"):
        await create("case-3")
    await connect()
    assert not (await create("case-3")).already_existed


async def test_keys_of_partners(service):
    """Keys issued, rolled and revoked, as authentication and the console see them."""
    partners, readers = service.partners, service.partner_list
    partner_id = await partners.add("Partner", "partner@example.com", STAFF)
    await partners.approve(partner_id, STAFF)
    first, second = [await partners.issue_key(partner_id, "live", STAFF) for _ in range(2)]
    new = await partners.roll_key(partner_id, first.key_id, timedelta(days=1), STAFF)

    async def known():
        rows = await readers.keys(partner_id)
        by_age = [(row["issued_at"], row["key_id"]) for row in rows]
        assert by_age == sorted(by_age)
        return {row["key_id"]: (row["revoked_at"], row["revoked"]) for row in rows}

    keys = await known()
    assert [keys[one.key_id] for one in (second, new)] == [(None, False)] * 2
    ends_at, at_once = keys[first.key_id]
    assert not at_once
    await partners.revoke_key(partner_id, first.key_id, STAFF)
    ended_at, at_once = (await known())[first.key_id]
    assert (ended_at < ends_at, at_once) == (True, True)
    partner = await readers.current(partner_id)
    assert partner is not None
    modes = {key_id: (key.mode, key.revoked) for key_id, key in partner.keys.items()}
    working = {one.key_id: ("live", False) for one in (second, new)}
    assert (partner.status, modes) == ("approved", working | {first.key_id: ("live", True)})
    assert await readers.current("ptn_none") is None


async def test_the_sandbox_begins_anew(service):
    """The fixtures of an epoch are known to the ledger of test mode alone."""
    partner_id = await service.partners.add("Partner", "partner@example.com", STAFF)
    await service.partners.approve(partner_id, STAFF)
    before = await service.partner_list.sandbox(partner_id)
    commands = SandboxCommands(service.modes["test"].ledger, service.partners, service.sandbox)
    await commands.reset(partner_id, 1, STAFF)
    after = await service.partner_list.sandbox(partner_id)
    assert tuple(before) == (0, None)
    assert (after["sandbox_epoch"], after["sandbox_reset_at"] is None) == (1, False)
    ids = fixture_ids(partner_id, 1)
    access = service.modes["test"].connection_list.access
    found = [await access(partner_id, entity_id) for entity_id in ids]
    assert [one.connected for one in found] == [True, False, False]
    await commands.disconnect(partner_id, 1, ids.connected_entity_id, STAFF)
    await commands.connect(partner_id, 1, ids.unconnected_entity_id, STAFF)
    found = [await access(partner_id, entity_id) for entity_id in ids]
    assert [one.connected for one in found] == [False, False, True]


async def test_the_team(service):
    """Who is staff, who no longer is, and who is again under another id."""
    staff, secrets = service.staff, await service.secrets.get()
    first = await staff.add("a@example.com", STAFF)
    other = await staff.add("b@example.com", STAFF)
    assert [one.staff_id for one in (await staff.list()).members] == [first, other]
    hashed = secrets.lookup_email("a@example.com")
    assert await staff.by_address(hashed) == first
    await staff.remove("a@example.com", STAFF)
    assert await staff.by_address(hashed) is None
    again = await staff.add("a@example.com", STAFF)
    assert [one.staff_id for one in (await staff.list()).members] == [other, again]


async def test_onboardings(service):
    """Starting, finishing and what is refused since, by address and by company number."""
    live = service.modes["live"]
    partner_id = await service.partners.add("Partner", "partner@example.com", STAFF)
    await service.partners.approve(partner_id, STAFF)
    caller = Caller(partner_id, "key_1", "live", 0, False, False, "req_1")

    async def start(reference, email, number=None):
        body = {"partner_user_id": reference, "company_name": "New", "user_email": email}
        more = {} if number is None else {"company_number": number}
        request = msgspec.convert(body | more, OnboardingRequest)
        return await live.onboardings.start(caller, request)

    started = await start("u1", "one@example.com", "AB 1")
    again = await start("u1", "one@example.com", "AB 1")
    waiting = await start("u2", "two@example.com", "ab1")
    assert (again.onboarding_id, again.matches) == (started.onboarding_id, True)
    assert (await start("u1", "one@example.com")).matches is False
    token, late = (one.magic_link_url.rpartition("/")[2] for one in (started, waiting))
    assert (await live.onboardings.look(token, None)).partner_id == partner_id
    with pytest.raises(Refusal, match="magic_link_invalid"):
        await live.onboardings.finished(token, None)
    confirmed = Confirmed(company_name="Renamed", company_number="CD 2")
    onboarding_id, entity_id, _ = await live.onboardings.complete(token, "req_2", confirmed)
    finished = await live.onboardings.finished(token, None)
    assert (onboarding_id, entity_id) == (started.onboarding_id, finished.entity_id)
    known = await live.connection_list.access(partner_id, entity_id)
    assert (known.name, known.established, known.connected) == ("Renamed", True, True)
    with pytest.raises(Refusal, match="magic_link_already_used"):
        await live.onboardings.complete(token, "req_2")
    with pytest.raises(Refusal, match="magic_link_invalid"):
        await live.onboardings.complete("unknown", "req_2")
    for email, number in (("ONE@example.com", None), ("new@example.com", "cd2")):
        with pytest.raises(Refusal, match="onboarding_unavailable"):
            await start("u3", email, number)
    await live.onboardings.complete(late, "req_3")
