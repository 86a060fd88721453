"""Controlling a partner's sandbox: connect and disconnect entities, and reset it."""

from service.connections import decisions
from service.connections.commands import change
from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import EntityConnected
from service.ledger.events import Cause, Event
from service.ledger.ledger import Ledger
from service.partners.commands import PartnerCommands
from service.sandbox.fixtures import SandboxFixtures, fixture_ids


class SandboxCommands:
    """Does in test mode what customers do in live mode. It cannot reach live entities."""

    def __init__(self, test: Ledger, partners: PartnerCommands, fixtures: SandboxFixtures) -> None:
        """`test` is the ledger of test mode."""
        self._test = test
        self._partners = partners
        self._fixtures = fixtures

    async def connect(self, partner_id: str, epoch: int, entity_id: str, cause: Cause) -> None:
        """Connect an entity, for the first time or again; connecting twice changes nothing.

        Refuses with `sandbox_entity_not_found` an entity outside this partner's sandbox.
        """
        await self._change(partner_id, epoch, entity_id, cause, wanted=True)

    async def disconnect(self, partner_id: str, epoch: int, entity_id: str, cause: Cause) -> None:
        """Disconnect an entity, as its customer would; refuses as `connect` does."""
        await self._change(partner_id, epoch, entity_id, cause, wanted=False)

    async def reset(self, partner_id: str, epoch: int, cause: Cause) -> None:
        """Begin a new epoch: new fixtures; references of earlier epochs are no longer known."""
        await self._partners.reset_sandbox(partner_id, epoch, cause)
        await self._fixtures.ensure(partner_id, epoch)

    async def _change(
        self, partner_id: str, epoch: int, entity_id: str, cause: Cause, *, wanted: bool
    ) -> None:
        is_fixture = entity_id in fixture_ids(partner_id, epoch)

        def decide(known: Access) -> list[Event]:
            if not known.version and not is_fixture:
                raise Refusal("sandbox_entity_not_found")
            if known.connected == wanted or (not known.version and not wanted):
                return []
            if wanted:
                return [EntityConnected(partner_id=partner_id, entity_id=entity_id, via="sandbox")]
            return decisions.disconnect(known, partner_id)

        try:
            await change(self._test, partner_id, entity_id, cause, decide)
        except Refusal as refusal:
            if refusal.code == "entity_not_found":  # looks like another partner's
                raise Refusal("sandbox_entity_not_found") from None
            raise
