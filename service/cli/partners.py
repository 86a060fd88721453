"""`claim-ledger partners` and `claim-ledger keys`."""

from typing import TYPE_CHECKING, Any

import click

from service.cli.target import Target, team_command
from service.core.clock import timestamp
from service.core.errors import Refusal

if TYPE_CHECKING:
    from service.facts.caller import Mode
    from service.ledger.database import Row


@click.group()
def partners() -> None:
    """Partner accounts: add, review, revoke, set."""


@partners.command()
@click.argument("name")
@click.option("--email", required=True, help="The partner's contact address.")
@team_command
async def add(target: Target, name: str, email: str) -> dict[str, Any]:
    """Record that a partner applied; it is pending until it is approved."""
    from service.http.decoding import check
    from service.partners.wire import PartnerApplication

    check(PartnerApplication, name=name, email=email)
    partner_id = await target.service.partners.add(name, email, target.cause)
    return await _partner(target, partner_id)


@partners.command()
@click.argument("partner_id")
@team_command
async def approve(target: Target, partner_id: str) -> dict[str, Any]:
    """Approve a pending partner: keys can be issued, and work."""
    await target.service.partners.approve(partner_id, target.cause)
    await target.service.sandbox.ensure(partner_id)
    return await _partner(target, partner_id)


@partners.command()
@click.argument("partner_id")
@click.option("--reason", help="Why, for the partner's people to read.")
@team_command
async def decline(target: Target, partner_id: str, reason: str | None) -> dict[str, Any]:
    """Decline a pending partner."""
    await target.service.partners.decline(partner_id, target.cause, reason)
    return await _partner(target, partner_id)


@partners.command()
@click.argument("partner_id")
@team_command
async def revoke(target: Target, partner_id: str) -> dict[str, Any]:
    """End a partner's access, and that of all its keys."""
    await target.service.partners.revoke(partner_id, target.cause)
    return await _partner(target, partner_id)


@partners.command(name="set")
@click.argument("partner_id")
@click.option(
    "--return-link/--no-return-link",
    default=None,
    help="Return the magic link in the answer to POST /onboardings. It is a credential.",
)
@click.option(
    "--suppress-email/--no-suppress-email",
    default=None,
    help="Do not mail the magic link: the partner delivers it.",
)
@team_command
async def set_(
    target: Target, partner_id: str, return_link: bool | None, suppress_email: bool | None
) -> dict[str, Any]:
    """Change a partner's settings; what is not named stays as it is."""
    await target.service.partners.change_settings(
        partner_id, target.cause, return_link=return_link, suppress_email=suppress_email
    )
    return await _partner(target, partner_id)


@partners.command(name="list")
@team_command
async def list_(target: Target) -> dict[str, Any]:
    """List every partner."""
    return {"partners": [_row(row) for row in await target.service.partner_list.partners()]}


@partners.command()
@click.argument("partner_id")
@team_command
async def show(target: Target, partner_id: str) -> dict[str, Any]:
    """Show one partner."""
    return await _partner(target, partner_id)


@click.group()
def keys() -> None:
    """API keys of partners: issue, list, roll, revoke."""


@keys.command()
@click.argument("partner_id")
@click.option("--mode", type=click.Choice(["live", "test"]), required=True)
@team_command
async def issue(target: Target, partner_id: str, mode: "Mode") -> dict[str, Any]:
    """Issue a key; its token is shown this once. Despite its `pk_` it is a secret."""
    key = await target.service.partners.issue_key(partner_id, mode, target.cause)
    epoch = (await _key_row(target, partner_id, key.key_id))["sandbox_epoch"]
    if mode == "test":
        await target.service.sandbox.ensure(partner_id, epoch)
    return {**key._asdict(), "partner_id": partner_id} | _sandbox(partner_id, mode, epoch)


@keys.command(name="list")
@click.argument("partner_id")
@team_command
async def list_keys(target: Target, partner_id: str) -> dict[str, Any]:
    """List a partner's keys, without their secrets."""
    await _partner(target, partner_id)
    rows = await target.service.partner_list.keys(partner_id)
    return {"partner_id": partner_id, "keys": [_key(row) for row in rows]}


@keys.command(name="revoke")
@click.argument("key_id")
@team_command
async def revoke_key(target: Target, key_id: str) -> dict[str, Any]:
    """Revoke a key; the next request that uses it is refused."""
    partner_id = await _owner(target, key_id)
    await target.service.partners.revoke_key(partner_id, key_id, target.cause)
    return _key(await _key_row(target, partner_id, key_id))


@keys.command(name="roll")
@click.argument("key_id")
@click.option(
    "--overlap",
    type=click.Choice(["now", "1h", "24h", "7d"]),
    default="24h",
    show_default=True,
    help="How long the old key works beside the new one.",
)
@team_command
async def roll_key(target: Target, key_id: str, overlap: str) -> dict[str, Any]:
    """Issue a key in a key's place; its token is shown this once."""
    from service.partners.commands import OVERLAPS

    partner_id = await _owner(target, key_id)
    issued = await target.service.partners.roll_key(
        partner_id, key_id, OVERLAPS[overlap], target.cause
    )
    old = _key(await _key_row(target, partner_id, key_id))
    return {**issued._asdict(), "partner_id": partner_id, "old": old}


async def _owner(target: Target, key_id: str) -> str:
    partner_id = await target.service.partner_list.partner_of_key(key_id)
    if partner_id is None:
        raise Refusal("key_not_found")
    return partner_id


async def _key_row(target: Target, partner_id: str, key_id: str) -> "Row":
    rows = await target.service.partner_list.keys(partner_id)
    return next(row for row in rows if row["key_id"] == key_id)


async def _partner(target: Target, partner_id: str) -> dict[str, Any]:
    rows = await target.service.partner_list.partners(partner_id)
    if not rows:
        raise Refusal("partner_not_found")
    return _row(rows[0])


def _row(row: "Row") -> dict[str, Any]:
    names = ("partner_id", "status", "name", "email", "return_link", "suppress_email")
    return {name: row[name] for name in names} | {"applied_at": timestamp(row["applied_at"])}


def _key(row: "Row") -> dict[str, Any]:
    revoked_at = None if row["revoked_at"] is None else timestamp(row["revoked_at"])
    return {
        "key_id": row["key_id"],
        "partner_id": row["partner_id"],
        "mode": row["mode"],
        "issued_at": timestamp(row["issued_at"]),
        "revoked_at": revoked_at,
    } | _sandbox(row["partner_id"], row["mode"], row["sandbox_epoch"])


def _sandbox(partner_id: str, mode: str, epoch: int) -> dict[str, Any]:
    """Return the entities that a test key can be tried on."""
    from service.sandbox.fixtures import fixture_ids

    return {"sandbox": fixture_ids(partner_id, epoch)._asdict()} if mode == "test" else {}
