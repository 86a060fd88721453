"""Somebody who can write to the database keeps nobody's data from being erased."""

from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from service.archive.directory import DirectoryArchive
from service.cli.erasing import answer_of
from service.cli.verdict import Findings
from service.facts.caller import Caller
from service.facts.connections import ConnectLinkRedeemed, link_stream
from service.facts.entities import entity_stream
from service.ledger.binding import Binding
from service.ledger.codec import Codec
from service.ledger.event_macs import EventKeys
from service.ledger.events import Unreadable
from service.ledger.following.parking import NOT_OURS
from service.ledger.scan import appended, each_of
from service.ledger.sequencer import Sequencer
from service.privacy.erase import erase_entity
from service.privacy.erasure_list import ErasureList
from service.privacy.erasure_subjects import Subject
from service.privacy.genuine import Genuine
from service.privacy.reapply import Reapply
from tests.ledger.raw_events import RawEvent, write_foreign, write_raw
from tests.progress import Shown
from tests.world import STAFF

GARBAGE = b'{"class_version": 1, "data": {"entity_id": "ent_1"}}'
KEYS = EventKeys({1: bytes(32)}, since_start=False, signing=1)


def redeemed(mac):
    """Return an unreadable event as a row of a scan."""
    stream = uuid4()
    event = (stream, 2, "ConnectLinkRedeemed", GARBAGE)
    return 0, 7, *event, KEYS.mac(*event) if mac else None


async def nothing(*_):
    """Find no positions."""
    return []


async def test_what_nobody_can_read_stops_no_erasure_unless_a_later_release_wrote_it():
    """Without a MAC it may be anybody's; what has one may say that a link is the subject's."""
    genuine = Genuine(
        Codec("live", {"ConnectLinkRedeemed": ConnectLinkRedeemed}), Binding("live", KEYS, ())
    )
    assert await genuine.events(nothing, [redeemed(mac=False)]) == []
    (left,) = genuine.unread
    assert (left.append_id, left.version, left.fault[:12]) == (7, 2, "Unreadable: ")
    with pytest.raises(Unreadable, match="repeat the command with that release"):
        await genuine.events(nothing, [redeemed(mac=True)])


async def test_foreign_events_in_a_persons_streams_stop_no_erasure(service, owner, tmp_path):
    """The rest is erased, they are reported, and once they are set aside, the log says it too."""
    live, ledger = service.modes["live"], service.modes["live"].ledger
    entity_id = await live.entities.add("Canary", "zoe@example.com", None, STAFF)
    partner_id = await service.partners.add("Partner", "p@example.com", STAFF)
    await service.partners.approve(partner_id, STAFF)
    caller = Caller(partner_id, "key_1", "live", 0, False, False, "req_1")
    links = [await live.connections.issue_link(caller, "u", "for Zoë") for _ in range(2)]
    await live.connections.approve(links[0].connect_url.rpartition("/")[2], entity_id, STAFF)
    owner.execute("update live.connect_links set entity_id = %s", (entity_id,))
    rows = owner.execute("select stream_id from live.connect_links order by state desc").fetchall()
    (redeemed_link,), (other_link,) = rows
    subject = Subject("entity", entity_id, entity_stream("live", entity_id))
    state = GARBAGE.replace(b"ent_1", entity_id.encode())
    written = await write_foreign(
        ledger,
        RawEvent(subject.stream_id, 2, "PersonalDataErased", state),
        RawEvent(subject.stream_id, 2**63 - 1, "EntityRegistered", b""),
        RawEvent(other_link, 2, "ConnectLinkRedeemed", b""),
        RawEvent(uuid4(), 1, "ClaimCreated", state),
    )
    listed = ErasureList(DirectoryArchive(tmp_path), service.secrets.get)
    parts = service.privacy(listed)["live"]

    @asynccontextmanager
    async def signed_out(_mode, _entity_id):
        yield

    async def erase():
        done = await erase_entity(parts, subject, "case 1", STAFF, Shown(), with_claims=True)
        sequencer = Sequencer(ledger)
        while await sequencer.step() or (await sequencer.lag()).waiting:
            pass
        return done

    done = await erase()
    told = answer_of("live", subject, done, with_claims=True)
    assert isinstance(told, Findings)
    assert f"4 events had no effect (not numbered, append_id {written[0]}: " in told.verdict
    assert [one["append_id"] for one in told["unread"]] == written
    assert {one["fault"] for one in told["unread"]} == {NOT_OURS}
    kept = owner.execute("select key_id from live.data_keys").fetchall()
    assert kept == [(other_link,)]  # nobody has redeemed it
    assert not isinstance(answer_of("live", subject, await erase(), with_claims=True), Findings)
    numbered = (
        "select originator_id from live.log join live.events using (append_id)"
        " where topic = 'PersonalDataErased'"
    )
    erased = {one for (one,) in owner.execute(numbered)}
    assert erased == {subject.stream_id, redeemed_link}
    await write_foreign(ledger, RawEvent(subject.stream_id, 9, "PersonalDataErased", b""))
    again = Reapply(listed, service.privacy(listed), signed_out, STAFF)
    (fault, *_) = (await again.run(await listed.names(), lambda _: None)).faults
    assert fault.fault == f"version 9 of stream {subject.stream_id} had no effect: {NOT_OURS}"
    owner.execute(
        "insert into live.events (originator_id, originator_version, topic, state)"
        " select %s, 100 + nr, 'PersonalDataErased', '' from generate_series(1, 200) as nr",
        (subject.stream_id,),
    )
    flooded = (await erase()).erased
    assert (flooded.is_new, len(flooded.unread) <= 100) == (False, True)


async def test_what_a_later_release_wrote_of_an_entity_ends_its_erasure(privacy, owner):
    """Before anything is done: this release cannot know which link or claim is in it."""
    entity_id = await (await privacy.documents.world.partner()).connected_entity()
    live, link_id = privacy.service.modes["live"].ledger, "lnk_later"
    state = GARBAGE.replace(b"ent_1", entity_id.encode()).replace(b"1,", b"9,")
    stream = link_stream("live", link_id)
    await write_raw(live, RawEvent(stream, 1, "ConnectLinkRedeemed", state))
    keys = "select count(*) from live.data_keys"
    before = owner.execute(keys).fetchone()
    with pytest.raises(Unreadable, match=f"version 1 of stream {stream} of live .* that release"):
        await privacy.erase_entity(entity_id)
    assert owner.execute(keys).fetchone() == before
    assert not list(privacy.published.glob("erasures/**/*"))


async def test_the_log_is_read_with_progress_and_only_what_names_the_entity(privacy):
    """PostgreSQL leaves out what does not name it; the bar ends where the log does."""
    partner = await privacy.documents.world.partner()
    entity_id, theirs = [await partner.connected_entity() for _ in range(2)]
    await partner.claim(theirs)
    live, shown = privacy.service.modes["live"].ledger, Shown()
    read = [
        row["topic"]
        async for rows in each_of(live, [ConnectLinkRedeemed], lambda _: None, told=entity_id)
        for row in rows
    ]
    size = await appended(live)
    subject = Subject("entity", entity_id, entity_stream("live", entity_id))
    await erase_entity(privacy.parts(), subject, "case 1", STAFF, shown, with_claims=True)
    assert read == ["ConnectLinkRedeemed"]
    assert shown.stages == {"reading live (events)": (size, size), "erasing claims": (0, 0)}
