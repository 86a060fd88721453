"""A second business of a person who has one."""

from service.bootstrap import Service
from service.entities.commands import register
from tests.world import STAFF


async def another_business(service: Service, name: str, email: str) -> str:
    """Register one more business of an address; answer its id.

    `EntityCommands.add` takes an address once. A ledger may hold more, from before that rule.
    """
    live = service.modes["live"].ledger
    entity_id = service.new_id("ent", service.clock())
    append = register(
        await service.secrets.get(),
        live.master_keys,
        STAFF,
        mode="live",
        entity_id=entity_id,
        name=name,
        email=email,
        company_number=None,
        established=True,
    )
    async with live.transaction() as transaction:
        await transaction.append(append)
    return entity_id
