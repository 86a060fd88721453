"""`claim-ledger keys`: the API keys of partners."""

from typing import Any

import click

from service.cli.options import once_option
from service.cli.output import columns_of
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields
from service.core.errors import Refusal
from service.facts.caller import MODES, Mode
from service.facts.partners import ApiKeyIssued
from service.http.decoding import check
from service.partners.commands import OVERLAPS
from service.partners.wire import KeyName
from service.privacy.genuine import Genuine
from service.sandbox.fixtures import fixture_ids


@team_command
@click.argument("partner_id")
@click.option(
    "--mode", type=click.Choice(MODES), required=True, help="The key's mode, which never changes."
)
@click.option("--name", help="What the partner's people call it, such as where it is used.")
@once_option
async def issue(
    target: Target, partner_id: str, mode: Mode, name: str | None, once: str | None
) -> Fields:
    """Issue a key. Its token is shown once; despite its `pk_` prefix, it is a secret.

    Repeated with the same --once, it exits with 1 and names the key that was issued.
    """
    called = check(KeyName, name=(name or "").strip()).name or None
    key = await target.service.partners.issue_key(
        partner_id, mode, target.cause, once=once, name=called
    )
    epoch = (await _key_row(target, partner_id, key.key_id))["sandbox_epoch"]
    if mode == "test":
        await target.service.sandbox.ensure(partner_id, epoch)
    answer = {**key._asdict(), "partner_id": partner_id, "name": called}
    return answer | _sandbox(partner_id, mode, epoch)


@team_command
@click.argument("partner_id")
async def list_(target: Target, partner_id: str) -> Fields:
    """List a partner's keys, without their secrets."""
    if await target.service.partner_list.current(partner_id) is None:
        raise Refusal("partner_not_found")
    rows = await target.service.partner_list.keys(partner_id)
    return {"partner_id": partner_id, "keys": [_key(row) for row in rows]}


@team_command
@click.argument("key_id")
async def revoke(target: Target, key_id: str) -> Fields:
    """Revoke a key; the next request that uses it is refused."""
    partner_id = await _owner(target, key_id)
    await target.service.partners.revoke_key(partner_id, key_id, target.cause)
    return _key(await _key_row(target, partner_id, key_id))


@team_command
@click.argument("key_id")
@click.option(
    "--overlap",
    type=click.Choice(list(OVERLAPS)),
    default="24h",
    show_default=True,
    help="How long the old key keeps working.",
)
async def roll(target: Target, key_id: str, overlap: str) -> Fields:
    """Replace a key with a new one, whose token is shown once.

    Repeated, it exits with 1 and names the key that took the old one's place.
    """
    partner_id = await _owner(target, key_id)
    issued = await target.service.partners.roll_key(
        partner_id, key_id, OVERLAPS[overlap], target.cause
    )
    old = _key(await _key_row(target, partner_id, key_id))
    return {**issued._asdict(), "partner_id": partner_id, "old": old}


async def _owner(target: Target, key_id: str) -> str:
    """Return whose key this is, by the log: an altered row keeps no key from being revoked."""
    accounts = target.service.accounts
    genuine = Genuine(accounts.codec, await accounts.binding())
    for _, event, _ in await genuine.search(accounts, (ApiKeyIssued,), key_id, progress):
        if isinstance(event, ApiKeyIssued) and event.key_id == key_id:
            return event.partner_id
    raise Refusal("key_not_found")


async def _key_row(target: Target, partner_id: str, key_id: str) -> dict[str, Any]:
    rows = await target.service.partner_list.keys(partner_id)
    return next(row for row in rows if row["key_id"] == key_id)


def _key(row: dict[str, Any]) -> Fields:
    # Of an altered row, `revoked_at` may be missing; `revoked` follows from events.
    shown = columns_of(row, "key_id", "partner_id", "mode", "issued_at", "revoked", "revoked_at")
    return shown | _sandbox(row["partner_id"], row["mode"], row["sandbox_epoch"])


def _sandbox(partner_id: str, mode: str, epoch: int) -> Fields:
    """Return the entities for trying out a test key."""
    return {"sandbox": fixture_ids(partner_id, epoch)._asdict()} if mode == "test" else {}
