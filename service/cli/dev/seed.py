"""The demonstration: an approved partner with two keys, a business, and their people."""

from typing import Any

from service.app.bootstrap import Service
from service.cli.dev.state import PEOPLE
from service.facts.caller import Caller
from service.ledger.events import Cause


async def seed(service: Service) -> dict[str, Any]:
    """Create the demonstration with the commands that partners, customers and the team use."""
    cause = Cause("system:dev", service.new_id("req", service.clock()))
    partners, live = service.partners, service.modes["live"]
    partner_id = await partners.add("Demonstration partner", "partner@example.com", cause)
    await partners.approve(partner_id, cause)
    live_key = await partners.issue_key(partner_id, "live", cause)
    test_key = await partners.issue_key(partner_id, "test", cause)
    await partners.add_member(partner_id, PEOPLE["developer"], cause)
    await service.staff.add(PEOPLE["team"], cause)
    entity_id = await live.entities.add("Demonstration business", PEOPLE["customer"], None, cause)
    caller = Caller(
        partner_id=partner_id,
        key_id=live_key.key_id,
        mode="live",
        sandbox_epoch=0,
        return_link=False,
        suppress_email=False,
        request_id=cause.request_id,
    )
    link = await live.connections.issue_link(caller, "demonstration", None)
    token = link.connect_url.rpartition("/")[2]
    await live.connections.approve(
        token, entity_id, Cause(f"customer:{entity_id}", cause.request_id)
    )
    await service.sandbox.ensure(partner_id)
    return {
        "partner_id": partner_id,
        "live_key": live_key.token,
        "test_key": test_key.token,
        "entity_id": entity_id,
    }
