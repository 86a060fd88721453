"""Erasing an entity: look-ups, links, onboardings, waiting mail, and its claims on request."""

from datetime import timedelta

import psycopg
import pytest

from service.app.storage import storage_for
from service.archive.port import ArchiveUnavailable
from service.cli.erasing import erase_subject
from service.cli.target import Target
from service.core.errors import Refusal
from service.documents.sweep import Sweep
from service.facts.entities import entity_stream
from service.ledger.events import ERASED
from service.ledger.sql import queries
from service.onboardings.commands import PURPOSE
from service.privacy import erasure_subjects
from service.privacy.documents import Removed
from service.privacy.erase import DocumentsRemain, erase_entity
from service.privacy.erasure_subjects import Subject
from service.storage.port import StorageUnavailable
from tests.privacy.links import labelled_link
from tests.progress import Shown
from tests.sessions import session_of
from tests.world import STAFF

EMAIL = "zoe.canary@example.com"
ONBOARDING = {
    "partner_user_id": "u-1",
    "company_name": "Canary Ltd",
    "company_number": "CN 123",
    "user_email": EMAIL,
    "user_name": "canary-Zoë",
}


def rows(database_url, statement, *given):
    """Return the rows of a statement run by the owner."""
    with psycopg.connect(database_url) as owner:
        return owner.execute(statement, given).fetchall()


async def onboarded(privacy):
    """Return a partner and the answer to its onboarding."""
    partner = await privacy.documents.world.partner()
    answer = await partner.call("POST", "/onboardings", json=ONBOARDING)
    assert answer.status_code == 201, answer.text
    return partner, answer.json()


async def entity_of(privacy, onboarding_id):
    """Return the entity of an onboarding."""
    row = await privacy.service.modes["live"].onboarding_list.by_id(onboarding_id)
    return row["entity_id"]


async def test_an_entitys_row_names_nobody(privacy, database_url):
    """Name and hashes are cleared; address and company number can be used again."""
    live = privacy.service.modes["live"].entities
    entity_id = await live.add("Canary Ltd", EMAIL, "CN 123", STAFF)
    with pytest.raises(Refusal):
        await live.add("Canary Ltd", EMAIL, "CN 123", STAFF)
    done = await privacy.erase_entity(entity_id)
    again = await live.add("Canary Ltd", EMAIL, "CN 123", STAFF)
    row = rows(
        database_url,
        "select name, email_hash, company_number_hash, established from live.entities"
        " where entity_id = %s",
        entity_id,
    )
    assert row == [("[erased]", None, None, True)]
    assert (done.erased.keys, done.erased.is_new, again != entity_id) == (1, True, True)


async def test_an_onboarding_still_answers_and_its_link_is_void(privacy, database_url):
    """A replay returns 200 with the same id for any body; the magic link is void."""
    partner, started = await onboarded(privacy)
    entity_id = await entity_of(privacy, started["onboarding_id"])
    secrets = await privacy.service.secrets.get()
    token = secrets.link_token(PURPOSE, started["onboarding_id"])
    await privacy.erase_entity(entity_id)
    same = await partner.call("POST", "/onboardings", json=ONBOARDING)
    other = await partner.call("POST", "/onboardings", json=ONBOARDING | {"company_name": "X"})
    assert [one.status_code for one in (same, other)] == [200, 200]
    assert {one.json()["onboarding_id"] for one in (same, other)} == {started["onboarding_id"]}
    with pytest.raises(Refusal, match="magic_link_invalid"):
        await privacy.service.modes["live"].onboardings.complete(token, "req_1")
    assert rows(database_url, "select magic_link_hash, state from live.onboardings") == [
        (None, "started")
    ]


async def test_waiting_mail_is_not_sent(privacy, database_url):
    """Waiting mail becomes obsolete; sent mail stays recorded, without its mailbox's hash."""
    _, started = await onboarded(privacy)
    entity_id = await entity_of(privacy, started["onboarding_id"])
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("delete from live.mail_outbox")
        owner.execute(
            "insert into live.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)"
            " select onboarding_id, stream_id, now(), now() + interval '1 day'"
            " from live.onboardings where entity_id = %s",
            [entity_id],
        )
        owner.execute("delete from live.mail_recipients")
        owner.execute(
            "insert into live.mail_recipients select onboarding_id, partner_id, '\\x01', now()"
            " from live.onboardings where entity_id = %s",
            [entity_id],
        )
    done = await privacy.erase_entity(entity_id)
    assert done.erased.mail == 1
    assert rows(database_url, "select message_id, state from live.mail_outbox") == [
        (started["onboarding_id"], "obsolete")
    ]
    assert rows(database_url, "select * from live.mail_recipients") == []


async def test_a_session_that_begins_meanwhile_ends_too(privacy, database_url, monkeypatch):
    """While the log is read, which may take minutes: afterwards nothing has the address."""
    entity_id = await privacy.service.modes["live"].entities.add("Zoe", EMAIL, None, STAFF)
    parts, target = privacy.parts(), Target(privacy.service, STAFF)
    subject = await parts.subjects.entity(entity_id)
    read = parts.subjects.named

    async def reading(*given):
        await session_of(privacy.service, EMAIL)
        return await read(*given)

    monkeypatch.setattr(parts.subjects, "named", reading)
    await erase_subject(target, "live", parts, subject, "case 1", with_claims=False)
    assert rows(database_url, "select session_id from accounts.sessions") == []


async def test_labels_of_the_links_that_it_redeemed_go_too(privacy, database_url):
    """Each label's own key is destroyed, and the link's stream records it."""
    partner = await privacy.documents.world.partner()
    entity_id = await privacy.documents.world.entity()
    body = {"partner_user_id": "u", "label": f"for {EMAIL}"}
    live = privacy.service.modes["live"].connections
    links = [
        (await partner.call("POST", "/connect-requests", json=body)).json()["connect_url"]
        for _ in range(2)
    ]
    await live.approve(links[0].rpartition("/")[2], entity_id, STAFF)
    before = await privacy.found(EMAIL)
    done = await privacy.erase_entity(entity_id)
    after = await privacy.found(EMAIL)
    ((redeemed,),) = rows(
        database_url, "select link_id from live.connect_links where state = 'redeemed'"
    )
    subjects = rows(
        database_url,
        "select convert_from(state, 'UTF8')::json -> 'data' ->> 'subject' from live.events"
        " where topic = 'PersonalDataErased' order by 1",
    )
    assert done.erased.keys == 2
    assert subjects == [(entity_id,), (redeemed,)]
    assert [place.field for place in before] == ["label", "label"]
    assert [place.field for place in after] == ["label"]  # the other link is nobody's yet


async def test_claims_are_subjects_of_their_own(privacy):
    """They are listed and kept; on request each is erased by its own event."""
    partner, entity_id = await privacy.documents.world.connected()
    claims = [
        (await partner.claim(entity_id, f"case-{number}")).json()["claim_id"] for number in range(3)
    ]
    live = privacy.service.modes["live"].claims
    alone = await privacy.erase_entity(entity_id)
    kept = [(await live.show(claim)).created.details is not None for claim in claims]
    whole = await privacy.erase_entity(entity_id, with_claims=True)
    gone = [(await live.show(claim)).erased for claim in claims]
    entries = [path.name for path in (privacy.published / "erasures" / "live").iterdir()]
    assert [row.claim_id for row in alone.claims] == claims
    assert [row.erased for row in alone.claims] == [False] * 3
    assert (kept, gone) == ([True] * 3, [True] * 3)
    assert (whole.erased.is_new, len(entries)) == (False, 4)


async def claims_with_documents(privacy):
    """Return an entity and its three claims, each with a document."""
    partner, entity_id = await privacy.documents.world.connected()
    claims = []
    for reference in "abc":
        ref = await privacy.documents.uploaded(partner, entity_id, reference)
        made = await partner.claim(entity_id, reference, document_refs=[ref])
        claims.append(made.json()["claim_id"])
    return entity_id, claims


async def test_keys_do_not_wait_for_documents(privacy, monkeypatch):
    """With the store down all keys are destroyed, and remaining documents are counted."""
    entity_id, claims = await claims_with_documents(privacy)
    live = privacy.service.modes["live"]
    whole, asked = live.storage.store.under, []

    async def mostly_away(prefix):
        asked.append(prefix)
        if len(asked) != 2:
            raise StorageUnavailable("connection refused")
        return await whole(prefix)

    with monkeypatch.context() as patch:
        patch.setattr(live.storage.store, "under", mostly_away)
        with pytest.raises(DocumentsRemain, match="connection refused") as remain:
            await privacy.erase_entity(entity_id, with_claims=True)
        told = Subject("entity", entity_id, entity_stream("live", entity_id))
        target = Target(privacy.service, STAFF)
        with pytest.raises(Refusal, match=r"and of its 3 claims are destroyed; documents of 3 of"):
            await erase_subject(target, "live", privacy.parts(), told, "case 1", with_claims=True)
    entries = [path.name for path in (privacy.published / "erasures" / "live").iterdir()]
    assert (remain.value.left, remain.value.claims) == (2, 3)
    assert [(await live.claims.show(claim)).erased for claim in claims] == [True] * 3
    assert len(entries) == 4
    again = await privacy.erase_entity(entity_id, with_claims=True)
    assert again.objects == (2, 0)


async def test_what_is_stored_of_no_claim_goes_with_the_claims(privacy, owner):
    """An upload that no claim came for, and one whose row was lost, are counted, or deleted."""
    world, live = privacy.documents.world, privacy.service.modes["live"]
    partner, entity_id = await world.connected()
    linked = await privacy.documents.uploaded(partner, entity_id, "a")
    assert (await partner.claim(entity_id, "a", document_refs=[linked])).status_code == 201
    never = await privacy.documents.uploaded(partner, entity_id, "never")
    lost = await privacy.documents.uploaded(partner, entity_id, "lost")
    other = await privacy.documents.uploaded(partner, await partner.connected_entity(), "other")
    owner.execute("delete from live.uploads where storage_path = %s", (lost["storage_path"],))
    alone = await privacy.erase_entity(entity_id)
    kept = set(await live.storage.store.under("entities/"))
    whole = await privacy.erase_entity(entity_id, with_claims=True)
    assert (alone.unclaimed, alone.objects) == (2, (0, 0))
    assert kept == {one["storage_path"] for one in (linked, never, lost, other)}
    assert (whole.unclaimed, whole.objects) == (0, (3, 0))
    assert set(await live.storage.store.under("entities/")) == {other["storage_path"]}
    claim = await partner.claim(entity_id, "never", document_refs=[never])
    assert claim.json()["code"] == "document_not_uploaded"


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_sweep_takes_what_an_erasure_left_of_no_claim(privacy, owner, monkeypatch, is_away):
    """What comes back through its URL, or stays because storage fails, is not forgotten."""
    live = privacy.service.modes["live"]
    partner, entity_id = await privacy.documents.world.connected()
    minted = await privacy.documents.mint(partner, entity_id)
    assert (await privacy.documents.put(minted)).status_code == 200
    if is_away:
        monkeypatch.setattr(live.storage.store, "delete", _unavailable)
        with pytest.raises(DocumentsRemain):
            await privacy.erase_entity(entity_id, with_claims=True)
        monkeypatch.undo()
    else:
        await privacy.erase_entity(entity_id, with_claims=True)
        assert (await privacy.documents.put(minted)).status_code == 200

    async def none_listed(_claims):
        return ()

    def sweep():
        before = privacy.service.clock() - timedelta(hours=1)
        return Sweep(live.ledger, live.storage.store, before, none_listed, dry_run=False)

    assert await sweep().run(Shown()) == []  # its URL may still be valid
    owner.execute("update live.uploads set minted_at = now() - interval '61 minutes'")
    assert [one.is_gone for one in await sweep().run(Shown())] == [True]
    assert await live.storage.store.under("entities/") == {}


async def _unavailable(*_given):
    raise StorageUnavailable("away")


async def test_documents_of_a_later_claim_stay(privacy, monkeypatch):
    """A claim that comes while its entity's claims are erased is not, and keeps its documents."""
    partner, entity_id = await privacy.documents.world.connected()
    late = await privacy.documents.uploaded(partner, entity_id, "late")
    monkeypatch.setattr("service.privacy.erase._removed", _removed_then(partner, entity_id, late))
    done = await privacy.erase_entity(entity_id, with_claims=True)
    assert (done.claims, done.objects) == ([], (0, 1))
    monkeypatch.undo()
    again = await privacy.erase_entity(entity_id, with_claims=True)
    assert (len(again.claims), again.objects) == (1, (1, 0))


def _removed_then(partner, entity_id, ref):
    async def removed(*_given):
        assert (await partner.claim(entity_id, "late", document_refs=[ref])).status_code == 201
        return Removed(0, 0)

    return removed


async def test_an_entitys_rest_without_storage(privacy, monkeypatch):
    """Without a bucket there is none, unless rows say otherwise; a failing store leaves it."""
    partner, entity_id = await privacy.documents.world.connected()
    nowhere = storage_for(privacy.service.settings, None).store
    monkeypatch.setattr(privacy.service.modes["live"].storage.store, "each", nowhere.each)
    none = await privacy.erase_entity(entity_id, with_claims=True)
    await privacy.documents.mint(partner, entity_id)
    with pytest.raises(DocumentsRemain, match="no bucket is set") as remain:
        await privacy.erase_entity(entity_id, with_claims=True)
    assert (none.objects, (remain.value.left, remain.value.claims)) == ((0, 0), (0, 0))
    assert (await privacy.erase_entity(entity_id)).unclaimed is None


async def test_a_full_list_stops_an_erasure_halfway(privacy, monkeypatch):
    """The refusal says how far it came; repeating completes it."""
    partner, entity_id = await privacy.documents.world.connected()
    claims = [(await partner.claim(entity_id, name)).json()["claim_id"] for name in "abc"]
    archive = privacy.service.archive
    whole, puts = archive.put, []

    async def full(name, content):
        if name.startswith("erasures/"):  # notes of sent mails are made meanwhile, too
            puts.append(name)
        if len(puts) > 2:
            raise ArchiveUnavailable("No space left on device")
        return await whole(name, content)

    with monkeypatch.context() as patch:
        patch.setattr(archive, "put", full)
        with pytest.raises(ArchiveUnavailable, match="entity and 1 of its 3 claims are erased"):
            await privacy.erase_entity(entity_id, with_claims=True)
    live = privacy.service.modes["live"].claims
    before = [(await live.show(claim)).erased for claim in claims]
    await privacy.erase_entity(entity_id, with_claims=True)
    assert before == [True, False, False]
    assert [(await live.show(claim)).erased for claim in claims] == [True] * 3


async def test_a_business_named_like_the_marker_of_an_erasure(privacy):
    """It is connected by link and by the team, until it is erased indeed."""
    live = privacy.service.modes["live"]
    by_link, by_team, late = [await privacy.documents.world.partner() for _ in range(3)]
    entity_id = await live.entities.add(ERASED, EMAIL, None, STAFF)
    await by_link.connect(entity_id)
    await live.connections.connect_by_staff(entity_id, by_team.partner_id, STAFF)
    for partner in (by_link, by_team):
        assert (await partner.claim(entity_id)).status_code == 201
    await privacy.erase_entity(entity_id)
    with pytest.raises(Refusal, match="entity_not_found"):
        await late.connect(entity_id)


async def test_connections_go_on(privacy):
    """Erasing does not disconnect: a partner can still list, and create claims."""
    partner, entity_id = await privacy.documents.world.connected()
    await privacy.erase_entity(entity_id)
    made = await partner.claim(entity_id)
    listed = await partner.call("GET", f"/claims?entity_id={entity_id}")
    assert (made.status_code, listed.status_code) == (201, 200)
    assert "Business" not in listed.text


async def test_tables_that_a_rebuild_keeps_are_cleared_too(privacy, database_url):
    """Otherwise a rollback could bring a name back."""
    live = privacy.service.modes["live"].entities
    entity_id = await live.add("Canary Ltd", EMAIL, None, STAFF)
    schemas = ("live_previous", "live_next")
    with psycopg.connect(database_url, autocommit=True) as owner:
        for schema in schemas:
            owner.execute(f"create schema {schema}")
            owner.execute(f"grant usage on schema {schema} to claim_ledger_live")
            owner.execute(f"create table {schema}.entities (like live.entities)")
            owner.execute(f"insert into {schema}.entities table live.entities")
            owner.execute(f"grant select, update on {schema}.entities to claim_ledger_live")
    before = {place.kind for place in await privacy.found(EMAIL)}
    await privacy.erase_entity(entity_id)
    assert before.issuperset(schemas)
    assert await privacy.found(EMAIL) == []
    for schema in schemas:
        kept = rows(database_url, f"select name, email_hash from {schema}.entities")  # noqa: S608 - ours
        assert kept == [("[erased]", None)], schema


async def test_a_row_has_no_other_business_erased(privacy, owner):
    """What a read model says of another's claim or link, its own events do not."""
    live, world = privacy.service.modes["live"], privacy.documents.world
    partner, other = await world.partner(), await world.partner()
    entity_id, theirs = [await partner.connected_entity() for _ in range(2)]
    claim_id = (await partner.claim(entity_id, "a")).json()["claim_id"]
    their_claim = (await partner.claim(theirs, "b")).json()["claim_id"]
    await live.connections.approve(await labelled_link(other), theirs, STAFF)
    owner.execute(
        "update live.claim_list set stream_id ="
        " (select stream_id from live.claim_list where claim_id = %s) where claim_id = %s",
        (their_claim, claim_id),
    )
    owner.execute("update live.connect_links set entity_id = %s", (entity_id,))
    labels = "select count(*) from live.data_keys join live.connect_links on stream_id = key_id"
    done = await privacy.erase_entity(entity_id, with_claims=True)
    assert (done.foreign, owner.execute(labels).fetchone()) == ([], (1,))
    assert [row.claim_id for row in done.claims] == [claim_id]
    assert not (await live.claims.show(their_claim)).erased
    owner.execute("update live.claim_list set entity_id = %s", (entity_id,))
    again = await privacy.erase_entity(entity_id, with_claims=True)
    assert again.foreign == [their_claim]
    assert not (await live.claims.show(their_claim)).erased


async def test_an_entitys_claims_are_looked_at_together(privacy, owner, monkeypatch):
    """Some by one statement, while whoever erases them sees how far that is; a foreign one, too."""
    monkeypatch.setattr(erasure_subjects, "CLAIMS_AT_ONCE", 2)
    partner = await privacy.documents.world.partner()
    entity_id, theirs = [await partner.connected_entity() for _ in range(2)]
    for name in "ab":
        await partner.claim(entity_id, name)
    foreign = (await partner.claim(theirs, "c")).json()["claim_id"]
    owner.execute("update live.claim_list set entity_id = %s", (entity_id,))
    reads, looked, shown = privacy.service.modes["live"].ledger.database.reads, [], Shown()
    fetch, beginnings = reads.fetch, queries("service.privacy").beginnings

    async def watched(statement, *values):
        if statement is beginnings:
            looked.append((len(*values), shown.stages["erasing claims"]))
        return await fetch(statement, *values)

    monkeypatch.setattr(reads, "fetch", watched)
    parts = privacy.parts()
    subject = await parts.subjects.entity(entity_id)
    done = await erase_entity(parts, subject, "case 1", STAFF, shown, with_claims=True)
    assert (len(done.claims), done.foreign) == (3, [foreign])
    assert looked[:2] == [(2, (0, 9)), (1, (2, 9))]
    assert shown.stages["erasing claims"] == (9, 9)


@pytest.mark.parametrize(
    "alter",
    [
        "update live.claim_list set entity_id = 'ent_none'",
        "update live.claim_list set partner_id = 'ptn_none'",
        "delete from live.claim_list",
        "update live.connections set entity_id = 'ent_none'",
        "delete from live.entities",
    ],
)
async def test_a_row_hides_no_claim_and_no_link_from_an_erasure(privacy, owner, alter):
    """What is an entity's is read from the log."""
    live, world = privacy.service.modes["live"], privacy.documents.world
    partner, other = await world.partner(), await world.partner()
    entity_id = await partner.connected_entity()
    await live.connections.approve(await labelled_link(other), entity_id, STAFF)
    await partner.claim(entity_id)
    owner.execute(alter)
    owner.execute("update live.connect_links set entity_id = 'ent_none'")
    done = await privacy.erase_entity(entity_id, with_claims=True)
    assert (len(done.claims), done.foreign) == (1, [])
    kept = "select topic from live.data_keys join live.events on originator_id = key_id"
    assert owner.execute(kept).fetchall() == []


async def test_a_row_has_no_other_claims_documents_deleted(privacy, owner):
    """A path of another claim in the table of uploads is left, and counted."""
    _, (ours, *_) = await claims_with_documents(privacy)
    owner.execute(
        "update live.uploads set claim_stream ="
        " (select stream_id from live.claim_list where claim_id = %s)",
        (ours,),
    )
    done = await privacy.erase_claim(ours)
    assert done.objects == (1, 2)
