"""Driving a partner's sandbox: entities connect and disconnect, and everything begins anew."""

from projections.connections.reader import access
from service.connections import decisions
from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import EntityConnected, connection_stream
from service.ledger.events import Cause, Event
from service.ledger.ledger import Append, Ledger, Transaction
from service.partners.commands import PartnerCommands
from service.sandbox.fixtures import SandboxFixtures, fixture_ids


class SandboxCommands:
    """Does in test mode what customers do in live mode. No live entity can be reached from it."""

    def __init__(self, test: Ledger, partners: PartnerCommands, fixtures: SandboxFixtures) -> None:
        """`test` is the ledger of test mode."""
        self._test = test
        self._partners = partners
        self._fixtures = fixtures

    async def connect(self, partner_id: str, epoch: int, entity_id: str, cause: Cause) -> None:
        """Connect an entity, for the first time or again; connecting twice changes nothing.

        Refuses with `sandbox_entity_not_found` what is none of this partner's sandbox.
        """
        await self._change(partner_id, epoch, entity_id, cause, wanted=True)

    async def disconnect(self, partner_id: str, epoch: int, entity_id: str, cause: Cause) -> None:
        """Disconnect an entity, as its customer would; refuses as `connect` does."""
        await self._change(partner_id, epoch, entity_id, cause, wanted=False)

    async def reset(self, partner_id: str, epoch: int, cause: Cause) -> None:
        """Begin an epoch: new fixtures, and no reference of an earlier one is known any more."""
        await self._partners.reset_sandbox(partner_id, epoch, cause)
        await self._fixtures.ensure(partner_id, epoch)

    async def _change(
        self, partner_id: str, epoch: int, entity_id: str, cause: Cause, *, wanted: bool
    ) -> None:
        stream = connection_stream("test", partner_id, entity_id)
        fixtures = fixture_ids(partner_id, epoch)

        async def attempt(transaction: Transaction) -> None:
            await transaction.lock(stream)
            known = await _known(transaction, partner_id, entity_id)
            if known.connected_at is None and entity_id not in fixtures:
                raise Refusal("sandbox_entity_not_found")
            events = _events(known, partner_id, wanted=wanted)
            if events:
                await transaction.append(Append(stream, known.version, events, cause))

        await self._test.decide(attempt)


async def _known(transaction: Transaction, partner_id: str, entity_id: str) -> Access:
    try:
        return await access(transaction, partner_id, entity_id)
    except Refusal:  # an entity that does not exist looks like another partner's
        raise Refusal("sandbox_entity_not_found") from None


def _events(known: Access, partner_id: str, *, wanted: bool) -> list[Event]:
    if known.connected == wanted or (known.connected_at is None and not wanted):
        return []
    if wanted:
        return [EntityConnected(partner_id=partner_id, entity_id=known.entity_id, via="sandbox")]
    return decisions.disconnect(known, partner_id)
