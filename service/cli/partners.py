"""`claim-ledger partners`."""

import click

from service.cli.options import once_option
from service.cli.output import columns_of
from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.core.errors import Refusal
from service.http.decoding import check
from service.partners.wire import PartnerApplication, PartnerApproval, website_of

_FIELDS = ("partner_id", "status", "name", "email", "return_link", "suppress_email", "applied_at")


@team_command
@click.argument("name")
@click.option("--email", required=True, help="The partner's contact address.")
@once_option
async def add(target: Target, name: str, email: str, once: str | None) -> Fields:
    """Record a partner's application. It is pending until it is approved or declined."""
    check(PartnerApplication, name=name, email=email)
    partner_id = await target.service.partners.add(name, email, target.cause, once=once)
    return await partner(target, partner_id)


@team_command
@click.argument("partner_id")
@click.option("--website", help="Its website's host, verified by you: customers are shown it.")
async def approve(target: Target, partner_id: str, website: str | None) -> Fields:
    """Approve a pending partner: keys can be issued, and work."""
    confirmed = check(PartnerApproval, website=website_of(website or ""))
    await target.service.partners.approve(partner_id, target.cause, confirmed.website)
    await target.service.sandbox.ensure(partner_id)
    return await partner(target, partner_id)


@team_command
@click.argument("partner_id")
@click.option("--reason", help="The reason, shown to the partner's people.")
async def decline(target: Target, partner_id: str, reason: str | None) -> Fields:
    """Decline a pending partner."""
    await target.service.partners.decline(partner_id, target.cause, reason)
    return await partner(target, partner_id)


@team_command
@click.argument("partner_id")
async def revoke(target: Target, partner_id: str) -> Fields:
    """End the access of a partner and of all its keys."""
    await target.service.partners.revoke(partner_id, target.cause)
    return await partner(target, partner_id)


@team_command
@click.argument("partner_id")
@click.option(
    "--return-link/--no-return-link",
    default=None,
    help="Return the magic link in the response to POST /onboardings. The link is a credential.",
)
@click.option(
    "--suppress-email/--no-suppress-email",
    default=None,
    help="Do not email the magic link: the partner delivers it.",
)
async def set_(
    target: Target, partner_id: str, return_link: bool | None, suppress_email: bool | None
) -> Fields:
    """Change a partner's settings; those that are not given stay as they are."""
    await target.service.partners.change_settings(
        partner_id, target.cause, return_link=return_link, suppress_email=suppress_email
    )
    return await partner(target, partner_id)


@team_command
@click.argument("partner_id")
@click.option(
    "--verified",
    required=True,
    help="The website's host, verified by you: customers are shown it. Empty: none any more.",
)
async def website(target: Target, partner_id: str, verified: str) -> Fields:
    """Change the verified website of an approved partner."""
    confirmed = check(PartnerApproval, website=website_of(verified))
    await target.service.partners.verify_website(partner_id, target.cause, confirmed.website)
    known = await target.service.partners.look(partner_id)
    return {**await partner(target, partner_id), "verified_website": known.verified_website}


@team_command
async def list_(target: Target) -> Fields:
    """List every partner."""
    return {"partners": await _partners(target)}


@team_command
@click.argument("partner_id")
async def show(target: Target, partner_id: str) -> Fields:
    """Show one partner."""
    return await partner(target, partner_id)


async def partner(target: Target, partner_id: str) -> Fields:
    """Return a partner; raises Refusal `partner_not_found`."""
    found = await _partners(target, partner_id)
    if not found:
        raise Refusal("partner_not_found")
    return found[0]


async def _partners(target: Target, partner_id: str | None = None) -> list[Fields]:
    return [
        columns_of(row, *_FIELDS) for row in await target.service.partner_list.partners(partner_id)
    ]
