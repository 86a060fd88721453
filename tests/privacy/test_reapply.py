"""After a restore the list outside the database is applied again."""

import psycopg
import pytest

from service.privacy.erasure_list import EntryUnreadable, ErasureList
from service.privacy.reapply import reapply
from tests.document_store import Documents, storage_settings, store_on
from tests.privacy.conftest import Privacy
from tests.privacy.test_races import labelled_link
from tests.world import STAFF, settings_for, world_on


class Restores:
    """A database, its backup of before, and one store and one list that both use."""

    def __init__(self, url, directory, store):
        self.url, self.directory, self.store = url, directory, store

    def opened(self, url):
        """Run a service on a database."""
        published = self.directory / "published"
        published.mkdir(exist_ok=True)
        given = storage_settings(self.store) | {"PUBLISH_TO": published.as_uri()}
        mail = self.directory / "mail"
        return world_on(settings_for(url, mail, **given), mail)

    def privacy(self, world, http=None):
        """Answer the team's side of a running service."""
        return Privacy(Documents(world, self.store, http), self.directory / "published")

    def backup(self):
        """Copy the database, which nobody uses; answer the copy's URL."""
        name = self.url.rpartition("/")[2]
        with psycopg.connect(self.url.rpartition("/")[0] + "/postgres", autocommit=True) as owner:
            owner.execute(f"create database {name}_backup template {name}")
        return f"{self.url}_backup"


@pytest.fixture
async def restores(database_url, tmp_path, store_credentials):
    """Answer a database that can be backed up."""
    async with store_on(tmp_path, store_credentials) as store:
        yield Restores(database_url, tmp_path, store)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            f"drop database if exists {database_url.rpartition('/')[2]}_backup with (force)"
        )


async def again(privacy):
    """Apply the list; answer what was done by subject."""
    modes = privacy.service.privacy(privacy.listed)
    done = await reapply(privacy.listed, modes, STAFF, lambda _steps: None)
    return {one.entry.subject: one for one in done}


async def test_a_restored_database_loses_what_was_erased(restores):
    """Keys are destroyed again, the events appended again; once done, nothing is left to do."""
    async with restores.opened(restores.url) as world:
        partner = await world.partner()
        entity_id = await partner.connected_entity()
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
    """The same reference after a restore makes another claim: the list does not mean that one."""
    async with restores.opened(restores.url) as world:
        partner = await world.partner()
        entity_id = await partner.connected_entity()
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


async def test_a_key_that_came_back_alone_is_destroyed_again(privacy, database_url):
    """A table of keys restored from elsewhere: the event is there, so none is appended."""
    partner = await privacy.documents.world.partner()
    made = await partner.claim(await partner.connected_entity())
    claim_id = made.json()["claim_id"]
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("create table kept as select * from live.data_keys")
        await privacy.erase_claim(claim_id)
        (events,) = owner.execute("select count(*) from live.events").fetchone()
        owner.execute("insert into live.data_keys select * from kept on conflict do nothing")
        done = await again(privacy)
        (events_after,) = owner.execute("select count(*) from live.events").fetchone()
    shown = await privacy.service.modes["live"].claims.show(claim_id)
    assert (done[claim_id].changed, done[claim_id].erased.is_new) == (True, False)
    assert (events_after, shown.created.details) == (events, None)


async def test_documents_that_a_cut_off_erasure_left_are_removed(privacy):
    """The transaction went through, storage did not: the list finishes it."""
    partner = await privacy.documents.world.partner()
    entity_id = await partner.connected_entity()
    ref = await privacy.documents.uploaded(partner, entity_id)
    made = (await partner.claim(entity_id, document_refs=[ref])).json()
    subject = await privacy.claim(made["claim_id"])
    await privacy.parts().erasures.erase(subject, "case 1", STAFF)
    store = privacy.service.modes["live"].storage.store
    assert len(await store.under("entities/")) == 1
    done = await again(privacy)
    assert (done[made["claim_id"]].objects, await store.under("entities/")) == (1, {})


@pytest.mark.parametrize("content", [b"", b"{", b'{"ledger": "live"}', b"\xff"])
async def test_an_entry_that_is_none_stops_it(privacy, content):
    """What cannot be read is not passed over in silence."""
    await privacy.service.publication.put("erasures/live/000000000000001-clm_1.json", content)
    with pytest.raises(EntryUnreadable, match=r"clm_1\.json is not an entry"):
        await again(privacy)


async def test_the_list_is_empty_at_first(privacy):
    """Nothing published: nothing to do."""
    assert await ErasureList(privacy.service.publication).names() == []
    assert await again(privacy) == {}


def partner_of(partner, world):
    """Answer the same partner, calling another service."""
    return type(partner)(world, partner.partner_id, partner.keys)


async def test_erasures_that_the_list_does_not_have(privacy):
    """An empty or another list is told by what the log says; a link's own erasure is none."""
    partner = await privacy.documents.world.partner()
    entity_id = await partner.connected_entity()
    live = privacy.service.modes["live"]
    other = await privacy.documents.world.partner()
    await live.connections.approve(await labelled_link(other), entity_id, STAFF)
    made = [(await partner.claim(entity_id, name)).json()["claim_id"] for name in "abc"]
    for claim_id in made[:2]:
        await privacy.erase_claim(claim_id)
    await privacy.erase_entity(entity_id)
    modes = privacy.service.privacy(privacy.listed)
    listed = [one.entry for one in (await again(privacy)).values()]
    erasures, test = (modes[mode].erasures for mode in ("live", "test"))
    assert (await erasures.unlisted(listed), await test.unlisted(listed)) == (0, 0)
    assert await erasures.unlisted(one for one in listed if one.subject != made[0]) == 1
    assert (await erasures.unlisted([]), await test.unlisted([])) == (3, 0)
