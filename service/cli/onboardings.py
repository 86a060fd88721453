"""`claim-ledger onboardings`."""

from typing import Any

import click

from service.cli.links import token_of
from service.cli.target import Target, team_command
from service.core.clock import timestamp
from service.core.errors import Refusal
from service.facts.caller import MODES, Mode


@click.command()
@click.argument("magic_link_url")
@team_command
async def complete(target: Target, magic_link_url: str) -> dict[str, Any]:
    """Complete an onboarding: its entity is connected to the partner."""
    live = target.service.modes["live"].onboardings
    onboarding_id, _, _ = await live.complete(token_of(magic_link_url), target.cause.request_id)
    return await _onboarding(target, onboarding_id, "live")


@click.command()
@click.argument("onboarding_id")
@click.option("--mode", type=click.Choice(MODES), default="live", show_default=True)
@team_command
async def show(target: Target, onboarding_id: str, mode: Mode) -> dict[str, Any]:
    """Show an onboarding, its entity and its state."""
    return await _onboarding(target, onboarding_id, mode)


async def _onboarding(target: Target, onboarding_id: str, mode: Mode) -> dict[str, Any]:
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
