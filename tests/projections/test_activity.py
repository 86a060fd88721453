"""The index of timelines: which ids of an event are subjects, and complete timelines."""

import msgspec
import pytest

from projections.activity.projector import SUBJECT_FIELDS, ActivityProjector, subjects
from projections.activity.reader import ActivityReader, TimelineEntry, merged
from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.facts.claims import Document
from service.ledger.events import Meta, Recorded
from service.ledger.following.runner import Subscription
from tests.ledger.raw_events import RawEvent, write_foreign, write_raw
from tests.ledger.samples import AT, CANARY, META, STREAM, sample
from tests.numbering import number
from tests.world import STAFF

EVENTS = {**ACCOUNTS, **PARTNER_LEDGER}
NO_SUBJECTS = {
    "partner_user_id": "the partner's own word for a user",
    "partner_claim_id": "the partner's own word for a claim",
    "partner_invoice_ids": "the partner's own words for invoices",
    "source_id": "what brought a connection has an event of its own beside it",
    "credential_id": "what an authenticator calls a passkey",
}


@pytest.fixture
async def told(world):
    """Return a partner, its claim, and a reader of the live ledger, with nothing numbered."""
    partner, entity_id = await world.connected()
    answer = await partner.claim(entity_id, message="m")
    claim_id = answer.json()["claim_id"]
    live = world.service.modes["live"]
    await live.claims.move(claim_id, "negotiation", STAFF)
    return partner, entity_id, claim_id, ActivityReader(live.ledger)


async def follow(service, ledger):
    """Bring activity to the end of a ledger's log."""
    projection = service.catch_up[ledger.name][0]
    while await Subscription(ledger, projection).step():
        pass


def topics(entries):
    """Return the topics of what happened, in order."""
    return [entry.topic for entry in entries]


@pytest.mark.parametrize("struct", [*EVENTS.values(), Document], ids=lambda one: one.__name__)
def test_every_id_of_an_event_is_a_subject_or_excused(struct):
    """A new field with an id must be indexed or give a reason."""
    ids = {name for name in struct.__struct_fields__ if name.endswith(("_id", "_ids"))}
    assert ids <= {*SUBJECT_FIELDS, *NO_SUBJECTS}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_no_subject_is_personal(event):
    """Encrypted fields are never copied to the index, where no erasure would find them."""
    assert set(SUBJECT_FIELDS) & set(event.personal) == set()


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_the_rows_hold_nothing_personal(event):
    """Ids, time, actor and request: no encrypted value and no partner's text."""
    rows = [
        write.row
        for write in ActivityProjector().project(Recorded(1, STREAM, 1, sample(event), META, 7))
    ]
    text = msgspec.json.encode(rows).decode()
    assert (CANARY in text, "the-partner_claim_id" in text) == (False, False)
    assert ("req_1", 7, event.__name__, AT, "staff:test", "req_1") in rows


def test_documents_and_erased_subjects_are_subjects():
    """They are in a list, and in a field with another kind of name."""
    attached = subjects(sample(EVENTS["DocumentsAttached"]))
    assert (attached, subjects(sample(EVENTS["PersonalDataErased"]))) == (
        ["the-claim_id", "doc_1"],
        ["the-subject"],
    )


async def test_a_timeline_is_complete_before_numbering_and_before_activity(told, world):
    """It joins unnumbered events, the unindexed log, and indexed rows."""
    _, _, claim_id, reader = told
    live = world.service.modes["live"].ledger
    unnumbered = await reader.timeline(claim_id, 100)
    await number(live)
    numbered = await reader.timeline(claim_id, 100)
    await follow(world.service, live)
    indexed = await reader.timeline(claim_id, 100)
    expected = ["ClaimCreated", "FirstMessagePosted", "ClaimStageChanged"]
    assert [topics(one) for one in (unnumbered, numbered, indexed)] == [expected] * 3
    assert [one.position for one in unnumbered] == [None] * 3
    assert [one.position for one in indexed] == [5, 6, 7]
    assert numbered == indexed
    assert indexed[2].data == {"claim_id": claim_id, "stage": "negotiation"}


async def test_a_timeline_joins_what_is_indexed_and_what_is_not(told, world):
    """One event each in activity, the log and unnumbered: each appears once."""
    _, _, claim_id, reader = told
    live = world.service.modes["live"]
    await number(live.ledger)
    await follow(world.service, live.ledger)
    await live.claims.move(claim_id, "proceedings", STAFF)
    await number(live.ledger)
    await live.claims.move(claim_id, "judgment", STAFF)
    timeline = await reader.timeline(claim_id, 100)
    assert [one.position for one in timeline] == [5, 6, 7, 8, None]
    assert [one.data["stage"] for one in timeline[2:]] == ["negotiation", "proceedings", "judgment"]


async def test_the_newest_events_are_kept_where_there_are_too_many(told, world):
    """A limit cuts off the oldest, whatever the source."""
    _, _, claim_id, reader = told
    live = world.service.modes["live"].ledger
    cut = [topics(await reader.timeline(claim_id, 2))]
    await number(live)
    await follow(world.service, live)
    cut.append(topics(await reader.timeline(claim_id, 2)))
    assert cut == [["FirstMessagePosted", "ClaimStageChanged"]] * 2


async def test_a_partners_references_are_no_subjects(told):
    """A reference equal to a claim's id adds nothing to that claim's timeline."""
    partner, entity_id, claim_id, reader = told
    before = topics(await reader.timeline(claim_id, 100))
    await partner.claim(entity_id, claim_id)
    assert topics(await reader.timeline(claim_id, 100)) == before


async def test_what_only_looks_like_a_subject_hides_nothing_older(told, world):
    """Where it takes up room on a page, the page says from where the next one goes on."""
    partner, entity_id, claim_id, reader = told
    await partner.claim(entity_id, claim_id)
    await number(world.service.modes["live"].ledger)
    newest = await reader.wanted(claim_id, 2)
    assert [one.position for one in newest.entries] == [newest.looked_to] == [7]
    assert [one.position for one in await reader.timeline(claim_id, 2, 7)] == [5, 6]


async def test_a_page_looks_at_a_bounded_part_of_what_is_not_indexed(told, world):
    """It says from where the next one goes on, and together they have every event once."""
    _, _, claim_id, reader = told
    live = world.service.modes["live"]
    await number(live.ledger)
    await follow(world.service, live.ledger)
    for stage in ("proceedings", "judgment", "enforcement"):
        await live.claims.move(claim_id, stage, STAFF)
    await number(live.ledger)
    pages, before = [], None
    while not pages or before is not None:
        page = await reader.wanted(claim_id, 100, before, beyond_max=1)
        pages.append([one.position for one in page.entries])
        before = page.looked_to
    assert pages == [[10], [9], [5, 6, 7, 8]]


async def test_data_that_are_none_are_shown_as_damage(told, owner):
    """An event has its form without them: its data may be no object, or no text."""
    _, _, claim_id, reader = told
    state = b'{"class_version":1,"meta":%s,"data":%s}'
    meta = msgspec.json.encode(META)
    for version, data in enumerate((b'["%s"]', b'{"\xff":"%s"}'), 8):
        owner.execute(
            "with one as (insert into live.events"
            " (originator_id, originator_version, topic, state) values (%s, %s, 'Strange', %s)"
            " returning append_id) insert into live.pending select append_id from one",
            [STREAM, version, state % (meta, data % claim_id.encode())],
        )
    strange = [one for one in await reader.timeline(claim_id, 100) if one.topic == "Strange"]
    assert [(one.meta, one.data) for one in strange] == [(None, None)] * 2


async def test_personal_fields_are_named_and_not_shown(told, world, owner):
    """Encrypted while their key exists, missing afterwards, and erased if this service says so."""
    _, _, claim_id, reader = told
    live = world.service.ledger("live")
    before = await reader.timeline(claim_id, 100)
    owner.execute("delete from live.data_keys")
    missing = await reader.timeline(claim_id, 100)
    begun = (
        "select e.originator_id, e.state from live.events as e join live.claim_list as c"
        " on c.stream_id = e.originator_id where c.claim_id = %s and e.originator_version = 1"
    )
    ((stream, state),) = owner.execute(begun, [claim_id]).fetchall()
    said = RawEvent(stream, 99, "PersonalDataErased", state)
    await write_foreign(live, said)
    said_by_others = (await reader.timeline(claim_id, 100))[:3]
    await write_raw(live, said._replace(version=100))
    after = (await reader.timeline(claim_id, 100))[:3]
    assert [one.personal for one in before] == [{"details": "sealed"}, {"text": "sealed"}, {}]
    lost = "key missing"
    for one in (missing, said_by_others):
        assert [entry.personal for entry in one] == [{"details": lost}, {"text": lost}, {}]
    assert [one.personal for one in after] == [{"details": "erased"}, {"text": "erased"}, {}]
    assert [one.data for one in before] == [one.data for one in after]
    assert "Debtor" not in str(before)


async def test_parked_events_are_in_the_timeline(told, world, owner):
    """Events that activity could not apply are shown."""
    _, _, claim_id, reader = told
    live = world.service.modes["live"].ledger
    await number(live)
    await follow(world.service, live)
    (where,) = owner.execute("select originator_id from live.events where append_id = 5").fetchone()
    owner.execute("delete from live.activity where position = 7")
    owner.execute("insert into live.parked values ('activity', 7, %s, 'KeyError', now())", (where,))
    assert [one.position for one in await reader.timeline(claim_id, 100)] == [5, 6, 7]


async def test_a_request_is_traced(told, world):
    """The request id is a subject of every event that it caused."""
    partner, entity_id, _, reader = told
    answer = await partner.claim(entity_id, "another", message="m")
    traced = await reader.timeline(answer.headers["X-Request-Id"], 100)
    assert topics(traced) == ["ClaimCreated", "FirstMessagePosted"]
    live = world.service.modes["live"].ledger
    await number(live)
    await follow(world.service, live)
    indexed = await reader.timeline(answer.headers["X-Request-Id"], 100)
    assert topics(indexed) == topics(traced)


def test_timelines_are_merged_by_time():
    """Each ledger's own order is kept, also where a clock went back."""

    def entry(ledger, position, second):
        meta = Meta(AT.replace(second=second), "a", "r", ledger)
        return TimelineEntry(ledger, position, "T", meta, {}, {})

    one = [entry("accounts", 1, 10), entry("accounts", 2, 5), entry("accounts", 3, 30)]
    other = [entry("live", 1, 7), entry("live", 2, 20)]
    assert [(e.ledger[0], e.position) for e in merged([one, other])] == [
        ("l", 1),
        ("a", 1),
        ("a", 2),
        ("l", 2),
        ("a", 3),
    ]
