"""`claim-ledger audit keygen` and `public-key`: the keys that checkpoints are signed with."""

from urllib.parse import urlsplit

import click

from service.app.setting import SettingsError
from service.app.settings import some
from service.archive.port import parts_of
from service.cli.faults import one_line
from service.cli.options import json_option
from service.cli.output import show
from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.evidence.note import NoteKey


@click.command()
@click.option(
    "--name", help="The key's name; default: the host of CLAIM_LEDGER_PUBLIC_URL, /claim-ledger."
)
@json_option
def keygen(name: str | None, *, as_json: bool) -> None:
    """Generate a checkpoint signing key: private for the settings, public for auditors."""
    if not name:
        with one_line(SettingsError):
            host = urlsplit(some("PUBLIC_URL")["PUBLIC_URL"] or "").hostname
        if not host:
            raise click.UsageError("--name: expected one such as example.com/claim-ledger")
        name = f"{host}/claim-ledger"
    try:
        key = NoteKey.generate(name)
        parts_of(name)  # checkpoints are published under it
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--name") from error
    show({"private_key": key.private_text, "public_key": key.public_text}, as_json=as_json)


@team_command
async def public_key(target: Target) -> Fields:
    """Print the public keys of the ring, newest first; the first one signs."""
    ring = target.service.settings.checkpoint_keys or ()
    return {"keys": [{"name": key.name, "public_key": key.public_text} for key in ring]}
