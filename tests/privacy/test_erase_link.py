"""Erasing a connect link: whoever its label names, although no business ever redeemed it."""

import psycopg
import pytest

from service.core.errors import Refusal
from service.facts.connections import link_stream
from service.privacy.erasure_list import ListedErasure
from service.privacy.faulty_keys import LISTED, faulty_by_list
from tests.privacy.links import CANARY, labelled_link
from tests.privacy.reapplied import reapplied
from tests.world import STAFF


@pytest.fixture
async def partner(privacy):
    """Return an approved partner."""
    return await privacy.documents.world.partner()


@pytest.fixture
def links(database_url):
    """Return a function that returns the ids of all links, oldest first."""

    def ids():
        with psycopg.connect(database_url) as owner:
            found = owner.execute("select link_id from live.connect_links order by link_id")
            return [link_id for (link_id,) in found]

    return ids


async def test_the_label_of_a_link_that_nobody_redeemed_is_erased(privacy, partner, links):
    """It is found no more, is in the erasure list, and a second run changes nothing."""
    live = privacy.service.modes["live"].connections
    await live.decline(await labelled_link(partner), STAFF)
    (link_id,) = links()
    before = await privacy.found(CANARY)
    done = await privacy.erase_link(link_id)
    again = await privacy.erase_link(link_id, "again")
    assert [(one.topic, one.field) for one in before] == [("ConnectLinkIssued", "label")]
    assert (done.erased.is_new, done.erased.keys) == (True, 1)
    assert again.erased == done.erased._replace(is_new=False, keys=0)
    assert await privacy.found(CANARY) == []
    (entry,) = [await privacy.listed.read(name) for name in await privacy.listed.names()]
    assert (entry.kind, entry.subject, list(entry.data_keys)) == (
        "link",
        link_id,
        [link_stream("live", link_id)],
    )


async def test_a_link_that_was_erased_cannot_be_redeemed(privacy, partner, links):
    """Nobody could see what they are asked for; the answer that it was given before stays."""
    token, declined = await labelled_link(partner), await labelled_link(partner)
    live = privacy.service.modes["live"].connections
    await live.decline(declined, STAFF)
    for link_id in links():
        await privacy.erase_link(link_id)
    entity_id = await privacy.documents.world.entity()
    for refused in (live.look(token), live.approve(token, entity_id, STAFF)):
        with pytest.raises(Refusal, match="connect_token_invalid"):
            await refused
    assert await live.answer(token) is None
    assert type((await live.answer(declined)).event).__name__ == "ConnectLinkDeclined"


async def test_an_entitys_erasure_and_a_links_are_one_erasure_of_it(privacy, partner, links):
    """Whichever comes second has nothing left to destroy of the label."""
    live = privacy.service.modes["live"].connections
    entity_id = await privacy.documents.world.entity()
    await live.approve(await labelled_link(partner), entity_id, STAFF)
    (link_id,) = links()
    first = await privacy.erase_link(link_id)
    entity = await privacy.erase_entity(entity_id)
    assert (first.erased.keys, entity.erased.keys) == (1, 1)
    assert await privacy.parts().erasures.unlisted() == 0


async def test_a_link_in_the_list_is_erased_again_after_a_restore(privacy, partner, links):
    """Its key is a finding until then; and an erasure that the list lacks is reported."""
    await labelled_link(partner)
    (link_id,) = links()
    erasures, ledger = privacy.parts().erasures, privacy.service.modes["live"].ledger
    stream = link_stream("live", link_id)
    given = {"ledger": "live", "kind": "link", "subject": link_id, "data_keys": [stream]}
    await privacy.listed.put(ListedErasure(**given, reason="x", at=privacy.service.clock()))
    faulty = [one async for one in faulty_by_list(ledger, privacy.listed)]
    names = await privacy.listed.names()
    done, faults = await reapplied(privacy)
    assert [(one.name, one.fault) for one in faulty] == [(str(stream), LISTED)]
    assert ([one.changed for one in done], faults) == ([True], [])
    assert [one async for one in faulty_by_list(ledger, privacy.listed)] == []
    assert (await privacy.found(CANARY), await erasures.unlisted()) == ([], 0)
    (privacy.published / names[0]).unlink()
    assert await erasures.unlisted() == 1
