"""The sandbox's fixture entities, one in every state (decision 16)."""

from collections.abc import Sequence
from typing import NamedTuple

from service.core.ids import derived_id
from service.entities.commands import register
from service.facts.connections import EntityConnected, EntityDisconnected, connection_stream
from service.facts.entities import entity_stream
from service.facts.partners import PartnerApproved, SandboxReset
from service.ledger.events import Cause, Event, Recorded
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.transaction import Transaction
from service.ledger.writing import Append


class Fixtures(NamedTuple):
    """The ids of a partner's fixture entities: derived, so they are known before they exist."""

    connected_entity_id: str
    disconnected_entity_id: str
    unconnected_entity_id: str


def fixture_ids(partner_id: str, epoch: int = 0) -> Fixtures:
    """Return the ids that a partner's fixtures have in one epoch of its sandbox."""
    states = ("connected", "disconnected", "unconnected")
    return Fixtures(
        *(derived_id("ent", "fixture", partner_id, str(epoch), state) for state in states)
    )


class SandboxFixtures:
    """Subscriber of the ledger of accounts: creates a partner's fixtures, again after a reset.

    A partner whose fixtures cannot be made is parked, so that no other partner waits for it.
    """

    name = "sandbox"
    events_max = 20
    topics = (PartnerApproved, SandboxReset)
    reads_personal = False
    takes_unknown = False

    def __init__(self, test: Ledger, secrets: ServiceKeyStore) -> None:
        """`test` is the ledger of test mode."""
        self._test = test
        self._secrets = secrets

    async def handle(self, _transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Create the fixtures of each approved partner, and of each new epoch."""
        for recorded in events:
            match recorded.event:
                case PartnerApproved(partner_id=partner_id):
                    await self.ensure(partner_id)
                case SandboxReset(partner_id=partner_id, epoch=epoch):
                    await self.ensure(partner_id, epoch)
                case _:
                    pass

    async def ensure(self, partner_id: str, epoch: int = 0) -> Fixtures:
        """Create a partner's fixtures unless they exist; return their ids."""
        ids = fixture_ids(partner_id, epoch)
        secrets = await self._secrets.get()

        async def attempt(transaction: Transaction) -> Fixtures:
            if await transaction.exists(entity_stream("test", ids.connected_entity_id)):
                return ids
            cause = Cause("system:sandbox", f"sandbox-{partner_id}-{epoch}")
            await transaction.append(
                *(
                    register(
                        self._test,
                        secrets,
                        cause,
                        entity_id=entity_id,
                        name=f"Sandbox business ({state.removesuffix('_entity_id')})",
                        email=f"{entity_id}@example.com",
                    ).append
                    for state, entity_id in ids._asdict().items()
                ),
                _connection(partner_id, ids.connected_entity_id, cause, disconnected=False),
                _connection(partner_id, ids.disconnected_entity_id, cause, disconnected=True),
            )
            return ids

        return await self._test.decide(attempt)


def _connection(partner_id: str, entity_id: str, cause: Cause, *, disconnected: bool) -> Append:
    facts: list[Event] = [
        EntityConnected(partner_id=partner_id, entity_id=entity_id, via="fixture")
    ]
    if disconnected:
        facts.append(EntityDisconnected(partner_id=partner_id, entity_id=entity_id))
    return Append(connection_stream("test", partner_id, entity_id), 0, facts, cause)
