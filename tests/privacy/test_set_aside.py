"""What somebody had set aside holds personal data, too: it is found and erased."""

from datetime import timedelta
from inspect import unwrap
from uuid import uuid4

import pytest

from service.cli import documents
from service.cli.erasing import erase_subject, find_subject
from service.cli.target import Target
from service.documents.verify import verify
from service.evidence.set_aside import TakeBackRefused, newest_set_aside, take_back
from service.ledger.sequencer import Sequencer
from service.ledger.transaction import AppendConflict
from service.privacy.erasure_list import ErasureList
from tests.document_store import reference_to
from tests.ledger.raw_events import RawEvent, write_foreign
from tests.world import STAFF

HIDE = "select live.set_aside_events(array_agg(append_id)) from live.pending"
HIDE_TWO = (
    "select live.set_aside_events(array(select append_id from live.pending order by 1 limit 2))"
)
FORGE = """
insert into live.set_aside (
    append_id, originator_id, originator_version, topic, state, mac, reason
) values (
    1, gen_random_uuid(), 1, 'ClaimCreated', convert_to(%s, 'UTF8'),
    decode('01' || repeat('00', 32), 'hex'), 'mac'
)
"""
KEYS = "select key_id from live.data_keys order by key_id"
EMAIL = "zoe@example.com"
ONBOARDING = {"partner_user_id": "u", "company_name": "Zoe Ltd", "user_email": EMAIL}
DEFENDANT = {"defendant": {"name": f"Debtor <{EMAIL}>"}}


@pytest.fixture
async def partner(privacy):
    """Return an approved partner."""
    return await privacy.documents.world.partner()


@pytest.fixture
async def entity_id(privacy, partner):
    """Return an entity that is connected to it, whose events are numbered."""
    found = await partner.connected_entity()
    await Sequencer(privacy.service.modes["live"].ledger).number_committed()
    return found


async def aside(privacy, topic):
    """Return the number of the event of a topic that was set aside last."""
    events = await newest_set_aside(privacy.service.modes["live"].ledger)
    return next(one.set_aside_id for one in events if one.topic == topic)


async def test_a_business_is_found_and_erased(privacy, partner, owner):
    """By its id, with its key and no event; it is found no more, and stays in the erasure list."""
    await partner.call("POST", "/onboardings", json=ONBOARDING)
    (subject,) = owner.execute("select entity_id from live.entities").fetchone()
    owner.execute(HIDE)
    found = await privacy.found(EMAIL)
    done = await privacy.erase_entity(subject)
    again = await privacy.erase_entity(subject)
    assert {(one.topic, one.field, one.is_sealed) for one in found} >= {
        ("EntityRegistered", "email", True)
    }
    assert all(one.where.startswith("set aside ") for one in found)
    assert (done.erased.is_new, done.erased.keys) == (True, 1)
    assert (again.erased.is_new, again.erased.keys) == (False, 0)
    assert await privacy.found(EMAIL) == []
    assert owner.execute(KEYS).fetchall() == []
    assert [name.endswith(f"{subject}.json") for name in await privacy.listed.names()][:1] == [True]
    live = privacy.service.modes["live"].ledger
    with pytest.raises(TakeBackRefused, match="destroyed by an erasure"):
        await take_back(live, await aside(privacy, "EntityRegistered"), "hidden", STAFF)


async def test_a_member_of_the_team_is_erased(privacy, owner):
    """By the id that is found; the address can join the team again."""
    target, staff = Target(privacy.service, STAFF), privacy.service.staff
    staff_id = await staff.add(EMAIL, STAFF)
    await staff.remove(EMAIL, STAFF)
    owner.execute("select accounts.set_aside_events(array_agg(append_id)) from accounts.events")
    (found,) = {one.subject for one in await privacy.found(EMAIL) if one.kind == "event"}
    member = await find_subject(target, privacy.listed, "staff", staff_id)
    done = await erase_subject(target, *member, "case 1", with_claims=False)
    assert (found, done.erased.is_new, done.erased.keys) == (staff_id, True, 1)
    assert await privacy.found(EMAIL) == []
    assert await staff.add(EMAIL, STAFF) != staff_id
    assert len((await staff.list()).members) == 1


async def test_a_claim_is_erased_by_its_id_with_its_documents(privacy, partner, entity_id, owner):
    """Its partner creates it again, under the same reference and with another id."""
    keys = owner.execute(KEYS).fetchall()
    reference = await privacy.documents.uploaded(partner, entity_id, "c1")
    made = await partner.claim(entity_id, "c1", document_refs=[reference])
    owner.execute(HIDE)
    done = await privacy.erase_claim(made.json()["claim_id"])
    left = owner.execute(KEYS).fetchall()
    again = await partner.claim(entity_id, "c1")
    assert (done.erased.is_new, done.erased.keys, done.objects.objects) == (True, 1, 1)
    assert left == keys
    assert again.status_code == 201


async def test_claims_of_a_business_are_erased_with_it(privacy, partner, entity_id, owner):
    """Those that were set aside, and those that stand; none that only names it, nor a forgery."""
    other = await partner.connected_entity()
    await Sequencer(privacy.service.modes["live"].ledger).number_committed()
    theirs = (await partner.claim(other, entity_id)).json()["claim_id"]
    made = [(await partner.claim(entity_id, f"c{nr}")).json()["claim_id"] for nr in range(2)]
    owner.execute(HIDE_TWO)
    owner.execute(FORGE, [entity_id])
    done = await privacy.erase_entity(entity_id, with_claims=True)
    assert sorted(one.claim_id for one in done.claims) == sorted(made)
    assert not done.foreign
    left = [(await privacy.parts().subjects.entity(other)).stream_id]
    left += [(await privacy.claim(theirs)).stream_id]
    assert owner.execute(KEYS).fetchall() == [(one,) for one in sorted(left)]


async def test_a_claim_that_begins_anew_meanwhile_keeps_its_key(
    privacy, partner, entity_id, owner, monkeypatch
):
    """It is another one, although its stream, and so the name of its key, are the same."""
    first = (await partner.claim(entity_id, "c1")).json()["claim_id"]
    put, seconds = ErasureList.put, []

    async def put_and_begin_anew(listed, entry):
        await put(listed, entry)
        owner.execute(HIDE)
        seconds.append((await partner.claim(entity_id, "c1")).json()["claim_id"])

    monkeypatch.setattr(ErasureList, "put", put_and_begin_anew)
    with pytest.raises(AppendConflict, match="has begun anew"):
        await privacy.erase_claim(first)
    (second,) = seconds
    claim = await privacy.service.modes["live"].claims.show(second)
    assert (claim.personal, claim.erased) == ("readable", False)


async def test_what_was_done_again_is_another_claim(privacy, partner, entity_id, owner):
    """Nobody can open the first one any more: it is not found, and no fault of the search."""
    first = (await partner.claim(entity_id, "c1", **DEFENDANT)).json()["claim_id"]
    owner.execute(HIDE)
    found = await privacy.found(EMAIL)
    second = (await partner.claim(entity_id, "c1")).json()["claim_id"]
    assert [one.topic for one in found] == ["ClaimCreated"]
    assert await privacy.found(EMAIL) == []
    assert await privacy.parts().subjects.claim(first) is None
    owner.execute(HIDE)
    assert await privacy.parts().subjects.claim(first) is None
    assert (await privacy.claim(second)).subject_id == second


async def test_a_sweep_keeps_what_can_be_taken_back(privacy, partner, entity_id, owner):
    """The claim has its documents again. What others had set aside keeps nothing."""
    reference = await privacy.documents.uploaded(partner, entity_id, "c1")
    orphan = await privacy.documents.uploaded(partner, entity_id, "c2")
    await partner.claim(entity_id, "c1", document_refs=[reference])
    state = b'{"data": {"documents": [{"storage_path": "%b"}]}}' % orphan["storage_path"].encode()
    live = privacy.service.modes["live"]
    await write_foreign(live.ledger, RawEvent(uuid4(), 1, "DocumentFlagged", state))
    owner.execute(HIDE)
    counts = {"uploads": 1, "objects": 1, "kept": 1, "set_aside": 1}
    for dry_run in (True, False):
        (swept, _) = (await sweep(privacy, dry_run=dry_run))["modes"]
        assert swept.items() >= counts.items()
    for topic in ("ClaimCreated", "DocumentsAttached"):
        await take_back(live.ledger, await aside(privacy, topic), "hidden", STAFF)
    faults = [one.fault async for one in verify(live.claim_documents, live.storage.store)]
    assert faults == [None]


async def test_a_sweep_takes_what_was_set_aside_of_an_erased_claim(
    privacy, partner, entity_id, owner
):
    """Erased without an event, by its entry in the list; or with one, before it was set aside."""
    minted = [await privacy.documents.mint(partner, entity_id, name) for name in ("c1", "c2")]
    for nr, one in enumerate(minted, 1):
        await privacy.documents.put(one)
        made = await partner.claim(entity_id, f"c{nr}", document_refs=[reference_to(one)])
        if nr == 1:
            owner.execute(HIDE)
        await privacy.erase_claim(made.json()["claim_id"])
        await privacy.documents.put(one)  # through a URL that was still valid
    owner.execute(HIDE)
    (swept, _) = (await sweep(privacy))["modes"]
    assert swept.items() >= {"uploads": 2, "objects": 2, "kept": 0, "set_aside": 0}.items()


async def sweep(privacy, *, dry_run=False):
    """Return what the command says that sweeps every upload, however young."""
    assert documents.sweep.callback is not None
    target = Target(privacy.service, STAFF)
    return await unwrap(documents.sweep.callback)(
        target, timedelta(hours=-1), with_unknown=False, dry_run=dry_run
    )
