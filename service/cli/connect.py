"""`claim-ledger connect`: connect links."""

from urllib.parse import urlsplit

import click

from service.cli.target import Target, team_command
from service.cli.verdict import Fields


@team_command
@click.argument("connect_url")
@click.option("--entity", "entity_id", metavar="ID", required=True, help="The customer's entity.")
async def approve(target: Target, connect_url: str, entity_id: str) -> Fields:
    """Approve a connect link for an entity."""
    live = target.service.modes["live"].connections
    partner_id = await live.approve(token_of(connect_url), entity_id, target.cause)
    return {"entity_id": entity_id, "partner_id": partner_id}


@team_command
@click.argument("connect_url")
async def decline(target: Target, connect_url: str) -> Fields:
    """Decline a connect link; it cannot be approved afterwards."""
    await target.service.modes["live"].connections.decline(token_of(connect_url), target.cause)
    return {"state": "declined"}


def token_of(link: str) -> str:
    """Return the token at the end of a link, which may be a bare token; "" if it is malformed."""
    try:
        return urlsplit(link).path.rpartition("/")[2]
    except ValueError:
        return ""
