"""`claim-ledger entities`, `connect` and `onboardings`: what customers do."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from service.cli.target import Target, team_command
from service.core.clock import timestamp
from service.core.errors import Refusal

if TYPE_CHECKING:
    from service.app.bootstrap import PartnerLedger
    from service.facts.access import Access
    from service.facts.caller import Mode


@click.group()
def entities() -> None:
    """Businesses: register, show, disconnect."""


@entities.command()
@click.argument("name")
@click.option("--email", required=True, help="The business's contact address.")
@click.option("--company-number", help="Its number in the register of companies.")
@click.option("--another", is_flag=True, help="Its address may have a business already.")
@team_command
async def add(
    target: Target, name: str, email: str, company_number: str | None, *, another: bool
) -> dict[str, Any]:
    """Register a business that already uses the service."""
    from service.entities.wire import NewEntity
    from service.http.decoding import check

    given = {"name": name, "email": email}
    if company_number is not None:
        given["company_number"] = company_number
    check(NewEntity, **given)
    live = target.service.modes["live"]
    entity_id = await live.entities.add(name, email, company_number, target.cause, another=another)
    return await _entity(target, entity_id)


@entities.command()
@click.argument("entity_id")
@team_command
async def show(target: Target, entity_id: str) -> dict[str, Any]:
    """Show a business and the partners it is or was connected to."""
    return await _entity(target, entity_id)


@entities.command()
@click.argument("entity_id")
@click.option("--partner", "partner_id", required=True)
@team_command
async def disconnect(target: Target, entity_id: str, partner_id: str) -> dict[str, Any]:
    """End a partner's connection: its writes are refused from now on."""
    _, ledger, _ = await _find(target, entity_id, partner_id)
    await ledger.connections.disconnect(entity_id, partner_id, target.cause)
    return await _entity(target, entity_id)


@click.group()
def connect() -> None:
    """Connect links, as the customer would use them."""


@connect.command(name="approve")
@click.argument("connect_url")
@click.option("--entity", "entity_id", required=True, help="The customer's entity.")
@team_command
async def approve(target: Target, connect_url: str, entity_id: str) -> dict[str, Any]:
    """Approve a connect link for an entity."""
    live = target.service.modes["live"].connections
    partner_id = await live.approve(_token(connect_url), entity_id, target.cause)
    return {"entity_id": entity_id, "partner_id": partner_id}


@connect.command(name="decline")
@click.argument("connect_url")
@team_command
async def decline(target: Target, connect_url: str) -> dict[str, Any]:
    """Decline a connect link; it cannot be approved afterwards."""
    live = target.service.modes["live"].connections
    await live.decline(_token(connect_url), target.cause)
    return {"state": "declined"}


@click.group()
def onboardings() -> None:
    """Onboardings: finish one as its person would, or look at one."""


@onboardings.command()
@click.argument("magic_link_url")
@team_command
async def complete(target: Target, magic_link_url: str) -> dict[str, Any]:
    """Finish an onboarding: its entity is connected to the partner."""
    live = target.service.modes["live"].onboardings
    onboarding_id, _, _ = await live.complete(_token(magic_link_url), target.cause.request_id)
    return await _onboarding(target, onboarding_id, "live")


@onboardings.command(name="show")
@click.argument("onboarding_id")
@click.option("--mode", type=click.Choice(["live", "test"]), default="live", show_default=True)
@team_command
async def show_onboarding(target: Target, onboarding_id: str, mode: "Mode") -> dict[str, Any]:
    """Show an onboarding, its entity and its state."""
    return await _onboarding(target, onboarding_id, mode)


def _token(link: str) -> str:
    """Return the token at the end of a link; a bare token is one too, garbage has none."""
    try:
        return urlsplit(link).path.rpartition("/")[2]
    except ValueError:
        return ""


async def _onboarding(target: Target, onboarding_id: str, mode: "Mode") -> dict[str, Any]:
    row = await target.service.modes[mode].onboarding_list.by_id(onboarding_id)
    if row is None:
        raise Refusal("onboarding_not_found")
    names = ("onboarding_id", "entity_id", "partner_id", "partner_user_id", "state")
    moments = ("started_at", "completed_at", "expires_at")
    return (
        {"mode": mode}
        | {name: row[name] for name in names}
        | {name: timestamp(row[name]) if row[name] else None for name in moments}
    )


async def _find(
    target: Target, entity_id: str, partner_id: str = ""
) -> "tuple[Mode, PartnerLedger, Access]":
    """Look for an entity in both modes; an id is in one of them at the most."""
    for mode, ledger in target.service.modes.items():
        try:
            return mode, ledger, await ledger.connection_list.access(partner_id, entity_id)
        except Refusal as refusal:
            if refusal.code != "entity_not_found":
                raise
    raise Refusal("entity_not_found")


async def _entity(target: Target, entity_id: str) -> dict[str, Any]:
    mode, ledger, access = await _find(target, entity_id)
    rows = await ledger.connection_list.connections(entity_id)
    return {
        "entity_id": entity_id,
        "mode": mode,
        "name": access.name,
        "established": access.established,
        "connections": [
            {
                "partner_id": row["partner_id"],
                "connected_at": timestamp(row["connected_at"]),
                "disconnected_at": timestamp(row["disconnected_at"])
                if row["disconnected_at"]
                else None,
            }
            for row in rows
        ],
    }
