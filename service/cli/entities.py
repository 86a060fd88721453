"""`claim-ledger entities`."""

from contextlib import suppress

import click

from service.app.ledgers import PartnerLedger
from service.cli.options import WholeNumber, once_option
from service.cli.output import columns_of
from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.core.errors import Refusal
from service.entities.wire import NewEntity
from service.facts.access import Access
from service.facts.caller import Mode
from service.http.decoding import check


@team_command
@click.argument("name")
@click.option("--email", required=True, help="The business's contact address.")
@click.option("--company-number", help="Its number in the register of companies.")
@click.option("--another", is_flag=True, help="Allow a second business at this address.")
@once_option
async def add(
    target: Target,
    name: str,
    email: str,
    company_number: str | None,
    once: str | None,
    *,
    another: bool,
) -> Fields:
    """Register a business that already uses the service."""
    given = {"name": name, "email": email}
    if company_number is not None:
        given["company_number"] = company_number
    check(NewEntity, **given)
    live = target.service.modes["live"]
    entity_id = await live.entities.add(
        name, email, company_number, target.cause, another=another, once=once
    )
    return await _entity(target, entity_id)


@team_command
@click.argument("entity_id")
async def show(target: Target, entity_id: str) -> Fields:
    """Show a business and the partners it is or was connected to."""
    return await _entity(target, entity_id)


@team_command
@click.argument("entity_id")
@click.option(
    "--partner", "partner_id", metavar="ID", required=True, help="The partner to disconnect."
)
@click.option(
    "--if-version",
    type=WholeNumber(1),
    help="Only if the connection still has this version, which `show` prints.",
)
async def disconnect(
    target: Target, entity_id: str, partner_id: str, if_version: int | None
) -> Fields:
    """End a partner's connection: its writes are refused from now on.

    Repeated later it would end a connection that began since; with --if-version it exits with 1.
    """
    _, ledger, _ = await _find(target, entity_id)
    await ledger.connections.disconnect(entity_id, partner_id, target.cause, if_version)
    return await _entity(target, entity_id)


async def _find(target: Target, entity_id: str) -> tuple[Mode, PartnerLedger, Access]:
    """Find an entity in either mode; an id is in one of them at most."""
    for mode, ledger in target.service.modes.items():
        with suppress(Refusal):  # `entity_not_found`, the only one
            return mode, ledger, await ledger.connection_list.access("", entity_id)
    raise Refusal("entity_not_found")


async def _entity(target: Target, entity_id: str) -> Fields:
    mode, ledger, access = await _find(target, entity_id)
    return {
        "entity_id": entity_id,
        "mode": mode,
        "name": access.name,
        "established": access.established,
        "connections": [
            columns_of(row, "partner_id", "version", "connected_at", "disconnected_at")
            for row in await ledger.connection_list.connections(entity_id)
        ],
    }
