"""What is held on a subject is what its own keys open."""

import pytest

from service.privacy.held import HeldData
from tests.privacy.links import CANARY, labelled_link
from tests.progress import Shown
from tests.world import STAFF


@pytest.fixture
def held(privacy):
    """Return a function that returns what is held on a subject, and what could not be read."""

    async def of(subject, links=()):
        data = HeldData(privacy.service.modes["live"].ledger, subject)
        return [one async for one in data.events(links, Shown())], data.unread

    return of


async def test_a_claim_that_names_anothers_key_is_not_copied_with_it(privacy, held):
    """Ids of keys follow from references, and partners choose those."""
    mine, other = [await privacy.documents.world.partner() for _ in range(2)]
    made = await mine.claim(await mine.connected_entity(), defendant={"name": "Mine"})
    subject = await privacy.claim(made.json()["claim_id"])
    of_another = str(subject.stream_id)
    await other.claim(await other.connected_entity(), of_another, defendant={"name": "Another"})
    events, unread = await held(subject)
    names = [one.fields["details"]["defendant"]["name"] for one in events]
    assert (names, unread) == (["Mine"], [])


async def test_labels_are_those_that_can_be_read(privacy, held):
    """No link without one, and none that was erased."""
    service, world = privacy.service, privacy.documents.world
    entity_id = await (await world.partner()).connected_entity()  # by a link without a label
    for _ in range(2):
        link = await labelled_link(await world.partner())
        await service.modes["live"].connections.approve(link, entity_id, STAFF)
    subject = await privacy.parts().subjects.entity(entity_id)
    *_, erased, _ = links = (await privacy.parts().subjects.named(subject, Shown())).links
    await privacy.erase_link(erased)
    events, unread = await held(subject, links)
    assert [(one.event, one.fields.get("label")) for one in events] == [
        ("EntityRegistered", None),
        ("ConnectLinkIssued", f"for {CANARY}"),
    ]
    assert unread == []
