"""`claim-ledger onboardings`."""

import click

from service.cli.connect import token_of
from service.cli.output import columns_of
from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.core.errors import Refusal
from service.facts.caller import MODES, Mode


@team_command
@click.argument("magic_link_url")
async def complete(target: Target, magic_link_url: str) -> Fields:
    """Complete an onboarding by a link that was only mailed: its entity is connected."""
    live = target.service.modes["live"].onboardings
    cause = target.cause
    onboarding_id, _, _ = await live.complete(
        token_of(magic_link_url), cause.request_id, actor=cause.actor
    )
    return await _onboarding(target, onboarding_id, "live")


@team_command
@click.argument("onboarding_id")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="live",
    show_default=True,
    help="The mode that it was started in.",
)
async def show(target: Target, onboarding_id: str, mode: Mode) -> Fields:
    """Show an onboarding, its entity and its state."""
    return await _onboarding(target, onboarding_id, mode)


async def _onboarding(target: Target, onboarding_id: str, mode: Mode) -> Fields:
    row = await target.service.modes[mode].onboarding_list.by_id(onboarding_id)
    if row is None:
        raise Refusal("onboarding_not_found")
    names = ("onboarding_id", "entity_id", "partner_id", "partner_user_id", "state")
    return {"mode": mode} | columns_of(row, *names, "started_at", "completed_at", "expires_at")
