"""After a restore, the erasure list outside the database is applied again."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta

import msgspec
import psycopg
import pytest

from service.privacy.erasure_list import EntryUnreadable, ErasureList, ListedErasure, subject_of
from service.privacy.faulty_keys import faulty_by_list
from service.privacy.reapply import CAME_BACK
from service.storage.port import StorageUnavailable
from tests.document_store import Documents, storage_settings, store_on
from tests.privacy.links import labelled_link
from tests.privacy.reapplied import reapplied
from tests.privacy.team import Privacy
from tests.sessions import BROWSER, session_of
from tests.world import STAFF, settings_for, world_on


class Restores:
    """A database, its earlier backup, and the store and list that both use."""

    def __init__(self, url, directory, store):
        self.url, self.directory, self.store = url, directory, store

    def opened(self, url):
        """Run a service on a database."""
        published = self.directory / "published"
        published.mkdir(exist_ok=True)
        given = storage_settings(self.store) | {"ARCHIVE_URL": published.as_uri()}
        mail = self.directory / "mail"
        return world_on(settings_for(url, mail, **given), mail, follow=False)

    def privacy(self, world, http=None):
        """Return the team's side of a running service."""
        return Privacy(Documents(world, self.store, http), self.directory / "published")

    def backup(self):
        """Copy the database, which nobody uses; return the copy's URL."""
        name = self.url.rpartition("/")[2]
        with psycopg.connect(self.url.rpartition("/")[0] + "/postgres", autocommit=True) as owner:
            owner.execute(f"create database {name}_backup template {name}")
        return f"{self.url}_backup"


@pytest.fixture
async def restores(database_url, tmp_path, store_credentials):
    """Return a database that can be backed up."""
    async with store_on(tmp_path, store_credentials) as store:
        yield Restores(database_url, tmp_path, store)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            f"drop database if exists {database_url.rpartition('/')[2]}_backup with (force)"
        )


async def again(privacy):
    """Apply a list without faults; return the outcome by subject."""
    done, faults = await reapplied(privacy)
    assert faults == []
    return {one.entry.subject: one for one in done}


async def test_a_restored_database_loses_what_was_erased(restores):
    """Keys are destroyed and events appended again; a second run does nothing."""
    async with restores.opened(restores.url) as world:
        partner, entity_id = await world.connected()
        claims = [
            (await partner.claim(entity_id, f"case-{number}")).json()["claim_id"]
            for number in range(3)
        ]
        early = restores.privacy(world)
        await early.erase_claim(claims[0], "before the backup")
    backup = restores.backup()
    async with restores.opened(restores.url) as world:
        late = restores.privacy(world)
        new = (await partner_of(partner, world).claim(entity_id, "case-9")).json()["claim_id"]
        await late.erase_claim(claims[1], "after the backup")
        await late.erase_claim(new, "unknown to the backup")
        await late.erase_entity(entity_id, "after the backup")
    async with restores.opened(backup) as world:
        restored = restores.privacy(world)
        live = restored.service.modes["live"].claims
        before = [(await live.show(claim)).erased for claim in claims]
        done = await again(restored)
        after = [await live.show(claim) for claim in claims]
        twice = await again(restored)
    assert before == [True, False, False]
    assert [claim.erased for claim in after] == [True, True, False]
    assert [claim.created.details is None for claim in after] == [True, True, False]
    assert {subject: one.changed for subject, one in done.items()} == {
        claims[0]: False,
        claims[1]: True,
        new: False,
        entity_id: True,
    }
    assert done[new].erased is None
    assert done[claims[1]].erased.reason == "after the backup"
    assert not any(one.changed for one in twice.values())


async def test_a_claim_that_was_created_anew_is_left_alone(restores):
    """The same reference after a restore is another claim, which is not listed."""
    async with restores.opened(restores.url) as world:
        partner, entity_id = await world.connected()
    backup = restores.backup()
    async with restores.opened(restores.url) as world:
        lost = (await partner_of(partner, world).claim(entity_id)).json()["claim_id"]
        await restores.privacy(world).erase_claim(lost)
    async with restores.opened(backup) as world:
        anew = (await partner_of(partner, world).claim(entity_id)).json()["claim_id"]
        restored = restores.privacy(world)
        done = await again(restored)
        shown = await restored.service.modes["live"].claims.show(anew)
    assert done[lost].erased is None
    assert anew != lost
    assert shown.created.details is not None


@pytest.mark.parametrize("keeps_began", [True, False])
async def test_a_business_that_was_registered_anew_is_left_alone(restores, keeps_began):
    """The same reference after a restore is the same id; a person's session stays, too."""
    async with restores.opened(restores.url) as world:
        await world.service.secrets.get()  # no backup of a service that has run lacks them
    backup = restores.backup()
    given = ("b@example.com", None, STAFF)
    async with restores.opened(restores.url) as world:
        lost = await world.service.modes["live"].entities.add("Old", *given, once="CRM-1")
        await restores.privacy(world).erase_entity(lost)
    async with restores.opened(backup) as world:
        restored = restores.privacy(world)
        if not keeps_began:
            restored.takes_without_mac = True
            await forget_beginnings(restored)
        first = await again(restored)
        assert await world.service.modes["live"].entities.add("New", *given, once="CRM-1") == lost
        await session_of(world.service, "b@example.com")
        later = await again(restored)
        live = world.service.modes["live"].ledger
        faulty = [one async for one in faulty_by_list(live, restored.listed)]
        found = {one.field for one in await restored.found("b@example.com")}
    with psycopg.connect(backup) as owner:
        sessions = owner.execute("select count(*) from accounts.sessions").fetchone()
    assert (first[lost].erased, later[lost].erased, faulty) == (None, None, [])
    assert ("email" in found, sessions) == (True, (1,))


async def forget_beginnings(privacy):
    """Make entries of the list what earlier releases wrote."""
    for path in (privacy.published / "erasures" / "live").iterdir():
        entry = json.loads(path.read_bytes())
        assert (len(entry.pop("began")), len(entry.pop("mac"))) == (64, 64)
        path.write_text(json.dumps(entry))


async def test_a_key_that_came_back_alone_is_destroyed_again(privacy, database_url):
    """Only the key table was restored: the event exists, so none is appended."""
    partner = await privacy.documents.world.partner()
    made = await partner.claim(await partner.connected_entity())
    claim_id, parts = made.json()["claim_id"], privacy.parts()
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("create table kept as select * from live.data_keys")
        await privacy.erase_claim(claim_id)
        (events,) = owner.execute("select count(*) from live.events").fetchone()
        owner.execute("insert into live.data_keys select * from kept on conflict do nothing")
        entry, erasures = await privacy.listed.read(*await privacy.listed.names()), parts.erasures
        assert not await erasures.shows(entry)
        done = await again(privacy)
        assert await erasures.shows(entry)
        (events_after,) = owner.execute("select count(*) from live.events").fetchone()
    shown = await privacy.service.modes["live"].claims.show(claim_id)
    assert (done[claim_id].changed, done[claim_id].erased.is_new) == (True, False)
    assert (events_after, shown.created.details) == (events, None)


async def test_keys_that_are_left_are_counted(privacy, owner):
    """Whether the database keeps one, or it came back once it was destroyed."""
    claim_ids = await cut_off(privacy)
    kept, back, _ = [(await privacy.claim(one)).stream_id for one in claim_ids]
    owner.execute("create table public.kept as select * from live.data_keys")
    owner.execute(
        "create function live.keep() returns trigger language plpgsql as $$begin"
        f" return case when old.key_id = '{kept}' then null else old end; end$$"
    )
    create = "create trigger keep before delete on live.data_keys for each row"
    await asyncio.to_thread(owner.execute, f"{create} execute function live.keep()")

    def advance(_steps):
        owner.execute(
            "insert into live.data_keys select * from public.kept where key_id = %s"
            " on conflict do nothing",
            [back],
        )

    done, faults = await reapplied(privacy, advance)
    assert [one.entry.subject for one in done] == claim_ids[1:]
    assert [(subject_of(one.entry), one.keys_left) for one in faults] == [
        (claim_ids[0], 1),
        (claim_ids[1], 1),
    ]
    assert "keeps them" in faults[0].fault
    assert faults[1].fault == CAME_BACK


async def test_documents_of_an_interrupted_erasure_are_removed(privacy):
    """Its transaction was committed, its documents were not deleted."""
    partner, entity_id, ref = await privacy.documents.uploading()
    made = (await partner.claim(entity_id, document_refs=[ref])).json()
    subject = await privacy.claim(made["claim_id"])
    await privacy.parts().erasures.erase(subject, "case 1", STAFF)
    store = privacy.service.modes["live"].storage.store
    assert len(await store.under("entities/")) == 1
    done = await again(privacy)
    assert (done[made["claim_id"]].objects, await store.under("entities/")) == (1, {})


async def cut_off(privacy):
    """Return the ids of three claims with documents and listed, unfinished erasures."""
    partner, entity_id = await privacy.documents.world.connected()
    made = []
    for number, reference in enumerate("abc"):
        ref = await privacy.documents.uploaded(partner, entity_id, reference)
        answer = await partner.claim(entity_id, reference, document_refs=[ref])
        claim = await privacy.claim(answer.json()["claim_id"])
        entry = ListedErasure(
            ledger="live",
            kind="claim",
            subject=claim.subject_id,
            data_keys=[claim.stream_id],
            reason="case 1",
            at=privacy.service.clock() + timedelta(seconds=number),
        )
        await privacy.listed.put(entry)
        made.append(claim.subject_id)
    return made


async def are_erased(privacy, claim_ids):
    """Return which claims are erased."""
    live = privacy.service.modes["live"].claims
    return [(await live.show(claim_id)).erased for claim_id in claim_ids]


STRAY = {
    "live/000000000000001-clm_1.json": b"",
    "live/000000000000001-clm_2.json": b"{",
    "live/000000000000001-clm_3.json": b'{"ledger": "live"}',
    "live/README.txt": b"\xff",
    "accounts/000000000000001-ptn_1.json": (
        b'{"ledger": "accounts", "kind": "claim", "subject": "ptn_1", "reason": "x",'
        b' "data_keys": ["00000000-0000-8000-8000-000000000000"], "at": "2026-01-01T00:00:00Z"}'
    ),
}


async def test_stray_files_hold_up_no_erasure(privacy):
    """Unreadable files, hidden folders included, are named; the rest is applied."""
    claim_ids = await cut_off(privacy)
    for name, content in STRAY.items():
        await privacy.service.archive.put(f"erasures/{name}", content)
    privacy.takes_without_mac = True
    hidden = privacy.published / "erasures" / "live" / ".kept" / "x.json"
    hidden.parent.mkdir()
    hidden.write_text("{}")
    done, faults = await reapplied(privacy)
    assert await are_erased(privacy, claim_ids) == [True] * 3
    assert [(one.changed, one.objects) for one in done] == [(True, 1)] * 3
    named = {f"erasures/{name}" for name in (*STRAY, "live/.kept/x.json")}
    assert {one.entry for one in faults} == named
    assert all(one.entry in one.fault for one in faults)


def planted(claim):
    """Return what whoever can write to the archive puts there to have a claim erased."""
    entry = ListedErasure(
        ledger="live",
        kind="claim",
        subject=claim.subject_id,
        data_keys=[claim.stream_id],
        reason="planted",
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return entry.name, msgspec.json.encode(entry)


async def test_an_entry_that_the_service_did_not_write_changes_nothing(privacy):
    """Without a MAC, with any, with that of another entry, or under another name: it is named."""
    partner, entity_id = await privacy.documents.world.connected()
    stays, goes = [
        (await partner.claim(entity_id, reference)).json()["claim_id"] for reference in "ab"
    ]
    await privacy.erase_claim(goes)
    (genuine,) = await privacy.listed.names()
    written = await privacy.service.archive.get(genuine)
    name, content = planted(await privacy.claim(stays))
    contents = [
        content,
        content[:-1] + b',"mac":"' + b"0" * 64 + b'"}\n',
        content[:-1] + written[written.index(b',"mac"') :],
        written,
        written.replace(b"case 1", b"case 2"),
    ]
    for number, one in enumerate(contents):
        await privacy.service.archive.put(f"{name}-{number}.json", one)
    done, faults = await reapplied(privacy)
    assert [(one.entry.subject, one.changed) for one in done] == [(goes, False)]
    assert [one.entry for one in faults] == [f"{name}-{number}.json" for number in range(5)]
    assert all(one.entry in one.fault for one in faults)
    assert await are_erased(privacy, [stays, goes]) == [False, True]
    nothing = re.sub(rb'"data_keys":\[[^]]*\]', b'"data_keys":[]', written)
    await privacy.service.archive.put(f"{name}-none.json", nothing)
    with pytest.raises(EntryUnreadable, match="names no data key"):
        await privacy.listed.read(f"{name}-none.json")


async def test_no_release_listed_a_link_or_a_member_without_a_mac(privacy, owner):
    """Such an entry is of nobody here, whoever trusts the archive: even a partner's key stays."""
    await labelled_link(await privacy.documents.world.partner())
    both = "select key_id from live.data_keys union all select key_id from accounts.data_keys"
    keys = owner.execute(both).fetchall()
    for key, kind, ledger in zip(keys, ("link", "staff"), ("live", "accounts"), strict=True):
        given = {"ledger": ledger, "kind": kind, "subject": "x", "data_keys": key}
        entry = ListedErasure(**given, reason="x", at=privacy.service.clock())
        await privacy.service.archive.put(entry.name, msgspec.json.encode(entry) + b"\n")
    privacy.takes_without_mac = True
    done, faults = await reapplied(privacy)
    assert (done, len(faults)) == ([], 2)
    assert all("has no MAC: no release" in one.fault for one in faults)
    assert owner.execute(both).fetchall() == keys


async def test_an_entry_of_an_earlier_release_is_applied_on_demand(privacy):
    """It has no MAC; one whose MAC does not hold is never applied. Once applied, it is no fault."""
    claim_ids = await cut_off(privacy)
    first, second, _ = [privacy.published / name for name in await privacy.listed.names()]
    for path, mac in ((first, b""), (second, b',"mac":"' + b"0" * 64 + b'"')):
        path.write_bytes(path.read_bytes().partition(b',"mac"')[0] + mac + b"}\n")
    _, faults = await reapplied(privacy)
    assert [subject_of(one.entry) for one in faults] == claim_ids[:2]
    assert faults[0].keys_left == 1
    assert await are_erased(privacy, claim_ids) == [False, False, True]
    privacy.takes_without_mac = True
    _, faults = await reapplied(privacy)
    assert [subject_of(one.entry) for one in faults] == claim_ids[1:2]
    assert await are_erased(privacy, claim_ids) == [True, False, True]
    privacy.takes_without_mac = False
    done, faults = await reapplied(privacy)
    assert [(one.entry.subject, one.changed) for one in done] == [
        (claim_ids[0], False),
        (claim_ids[2], False),
    ]
    assert [subject_of(one.entry) for one in faults] == claim_ids[1:2]


async def test_keys_do_not_wait_for_documents(privacy, monkeypatch):
    """With the store down keys are destroyed and claims named; a second run completes."""
    claim_ids = await cut_off(privacy)
    store = privacy.service.modes["live"].storage.store

    async def away(_prefix):
        raise StorageUnavailable("connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(store, "under", away)
        done, faults = await reapplied(privacy)
    assert await are_erased(privacy, claim_ids) == [True] * 3
    assert [one.erased.keys for one in done] == [1, 1, 1]
    assert [subject_of(one.entry) for one in faults] == claim_ids
    assert {one.fault for one in faults} == {
        "its documents remain: the document store is unavailable (connection refused)"
    }
    ended = await again(privacy)
    assert [ended[claim_id].objects for claim_id in claim_ids] == [1, 1, 1]


async def test_a_claim_whose_documents_fail_holds_up_no_other(privacy, monkeypatch):
    """One of three cannot be listed; the others' objects are deleted."""
    claim_ids = await cut_off(privacy)
    store = privacy.service.modes["live"].storage.store
    whole, asked = store.under, []

    async def some(prefix):
        asked.append(prefix)
        if len(asked) == 1:
            raise StorageUnavailable("HTTP 500")
        return await whole(prefix)

    with monkeypatch.context() as patch:
        patch.setattr(store, "under", some)
        done, faults = await reapplied(privacy)
    assert [one.objects for one in done] == [0, 1, 1]
    assert [subject_of(one.entry) for one in faults] == claim_ids[:1]


async def test_an_event_that_cannot_be_read_holds_up_no_other(privacy, database_url):
    """Only its claim is named."""
    claim_ids = await cut_off(privacy)
    first = await privacy.claim(claim_ids[0])
    damage = "update live.events set state = '{}' where originator_id = %s"
    with psycopg.connect(database_url, autocommit=True) as owner:
        # A whole table is waited for beside the loop, whose own transactions may hold it.
        for statement, values in (
            ("alter table live.events disable trigger user", []),
            (damage, [first.stream_id]),
            ("alter table live.events enable trigger user", []),
        ):
            await asyncio.to_thread(owner.execute, statement, values)
    _, faults = await reapplied(privacy)
    assert await are_erased(privacy, claim_ids[1:]) == [True, True]
    assert [subject_of(one.entry) for one in faults] == claim_ids[:1]


async def test_an_erased_person_is_signed_out_again(restores):
    """Restored sessions and links of the address are removed; others stay."""
    gone, stays = "gone@example.com", "stays@example.com"
    async with restores.opened(restores.url) as world:
        service = world.service
        entity_id = await service.modes["live"].entities.add("Gone", gone, None, STAFF)
        for email in (gone, stays):
            await service.sign_in.ask(email, "/account", BROWSER)
            await session_of(service, email)
    backup = restores.backup()
    async with restores.opened(restores.url) as world:
        await restores.privacy(world).erase_entity(entity_id)
    async with restores.opened(backup) as world:
        restored = restores.privacy(world)
        before = {place.topic for place in await restored.found(gone)}
        await again(restored)
        after = await restored.found(gone)
        kept = {place.topic for place in await restored.found(stays)}
    assert {"sessions", "sign_in_links", "entities", "EntityRegistered"} <= before
    assert (after, kept) == ([], {"sessions", "sign_in_links"})


async def test_an_empty_list_does_nothing(privacy):
    """Nothing was archived, so nothing is done."""
    assert await privacy.listed.names() == []
    assert await again(privacy) == {}


def partner_of(partner, world):
    """Return the same partner as a caller of another service."""
    return type(partner)(world, partner.partner_id, partner.keys)


async def test_erasures_missing_from_the_list_are_reported(privacy):
    """The log reveals an empty or wrong list; a link's own erasure is not counted."""
    partner, entity_id = await privacy.documents.world.connected()
    live = privacy.service.modes["live"]
    other = await privacy.documents.world.partner()
    await live.connections.approve(await labelled_link(other), entity_id, STAFF)
    made = [(await partner.claim(entity_id, name)).json()["claim_id"] for name in "abc"]
    for claim_id in made[:2]:
        await privacy.erase_claim(claim_id)
    await privacy.erase_entity(entity_id)
    erasures, test = (privacy.parts(mode).erasures for mode in ("live", "test"))
    assert (await erasures.unlisted(), await test.unlisted()) == (0, 0)
    first, *others = [privacy.published / name for name in await privacy.listed.names()]
    assert subject_of(first.name) == made[0]
    first.unlink()
    assert await erasures.unlisted() == 1
    for one in others:
        one.unlink()
    assert (await erasures.unlisted(), await test.unlisted()) == (3, 0)


class ErasedMeanwhile(ErasureList):
    """A list beside whose reader other erasures run: one after each time that it is read."""

    def __init__(self, privacy, claim_ids):
        super().__init__(privacy.service.archive, privacy.service.secrets.get)
        self.privacy, self.waiting = privacy, list(claim_ids)

    async def names(self, ledger=None):
        """Return the names, of which the next erasure's is none."""
        found = await super().names(ledger)
        if self.waiting:
            await self.privacy.erase_claim(self.waiting.pop())
        return found


async def test_an_erasure_that_runs_meanwhile_is_not_missing_from_the_list(privacy):
    """It is listed before it is done, but perhaps after the list was read; a gap is still found."""
    partner, entity_id = await privacy.documents.world.connected()
    made = [(await partner.claim(entity_id, name)).json()["claim_id"] for name in "abcde"]

    async def missing(*meanwhile):
        listed = ErasedMeanwhile(privacy, meanwhile)
        return await privacy.service.privacy(listed)["live"].erasures.unlisted()

    assert await missing(*made[:2]) == 0
    await privacy.erase_claim(made[2])
    names = await privacy.listed.names()
    (gone,) = [name for name in names if subject_of(name) == made[2]]
    (privacy.published / gone).unlink()
    assert await missing(*made[3:]) == 1
