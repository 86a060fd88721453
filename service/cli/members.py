"""`claim-ledger members`: who may use the developer console of a partner."""

import click

from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.core.errors import Refusal
from service.http.decoding import check
from service.ledger.events import KEY_MISSING
from service.partners.wire import NewMember


@team_command
@click.argument("partner_id")
@click.option("--email", required=True, help="The address that the person signs in with.")
async def add(target: Target, partner_id: str, email: str) -> Fields:
    """Add a person to a partner's team. Once the partner is approved, they get an email."""
    check(NewMember, email=email)
    await target.service.partners.add_member(partner_id, email, target.cause)
    return await _members(target, partner_id)


@team_command
@click.argument("partner_id")
async def list_(target: Target, partner_id: str) -> Fields:
    """List a partner's team."""
    return await _members(target, partner_id)


@team_command
@click.argument("partner_id")
@click.argument("member_id")
async def remove(target: Target, partner_id: str, member_id: str) -> Fields:
    """Remove a person from a partner's team. The last one of an approved partner stays."""
    await target.service.partners.remove_member(partner_id, member_id, target.cause)
    return await _members(target, partner_id)


async def _members(target: Target, partner_id: str) -> Fields:
    partner = await target.service.partners.look(partner_id)
    if not partner.status:
        raise Refusal("partner_not_found")
    listed = [
        {
            "member_id": row["member_id"],
            "email": partner.members[row["member_id"]].email or KEY_MISSING,
            "added_at": row["added_at"],
        }
        for row in await target.service.partner_list.members(partner_id)
        if row["member_id"] in partner.members
    ]
    return {"partner_id": partner_id, "members": listed}
