"""A partner has used documents once a claim has one, not when an upload URL was minted."""

from service.request_log.reader import RequestsReader
from tests.document_store import documents_on


async def test_only_a_claim_with_a_document_counts(database_url, tmp_path, store_credentials):
    """A minted URL, the live mode and other partners do not count."""
    async with documents_on(database_url, tmp_path, store_credentials, follow=False) as documents:
        world = documents.world
        database = world.service.modes["test"].ledger.database
        reader = RequestsReader(database, world.service.clock)
        partner, other = await world.partner(), await world.partner()
        ids = await partner.sandbox()
        entity_id = ids.connected_entity_id
        await documents.mint(partner, entity_id, mode="test")
        assert (await partner.claim(entity_id, mode="test")).status_code == 201
        live = await partner.connected_entity()
        ref = await documents.uploaded(partner, live)
        assert (await partner.claim(live, document_refs=[ref])).status_code == 201
        assert not await reader.has_documents(partner.partner_id)
        ref = await documents.uploaded(partner, entity_id, "case-2", mode="test")
        made = await partner.claim(entity_id, "case-2", mode="test", document_refs=[ref])
        assert made.status_code == 201
        assert await reader.has_documents(partner.partner_id)
        assert not await reader.has_documents(other.partner_id)
