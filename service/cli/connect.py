"""`claim-ledger connect`: connect links."""

from typing import Any

import click

from service.cli.links import token_of
from service.cli.target import Target, team_command


@click.command()
@click.argument("connect_url")
@click.option("--entity", "entity_id", required=True, help="The customer's entity.")
@team_command
async def approve(target: Target, connect_url: str, entity_id: str) -> dict[str, Any]:
    """Approve a connect link for an entity."""
    live = target.service.modes["live"].connections
    partner_id = await live.approve(token_of(connect_url), entity_id, target.cause)
    return {"entity_id": entity_id, "partner_id": partner_id}


@click.command()
@click.argument("connect_url")
@team_command
async def decline(target: Target, connect_url: str) -> dict[str, Any]:
    """Decline a connect link; it cannot be approved afterwards."""
    await target.service.modes["live"].connections.decline(token_of(connect_url), target.cause)
    return {"state": "declined"}
