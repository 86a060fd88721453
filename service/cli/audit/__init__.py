"""`claim-ledger audit`: evidence, for auditors and for whoever has to answer them."""

import click

from service.cli.audit.checkpoint import checkpoint
from service.cli.audit.export import export
from service.cli.audit.history import history, trace
from service.cli.audit.keys import keygen, public_key
from service.cli.audit.lineage import lineage
from service.cli.audit.prove import check, prove
from service.cli.audit.replay import replay
from service.cli.audit.verify import verify


@click.group()
def audit() -> None:
    """Checkpoints, verification, exports, receipts and replays of the ledgers."""


COMMANDS: tuple[click.Command, ...] = (
    replay,
    verify,
    history,
    trace,
    keygen,
    public_key,
    checkpoint,
    lineage,
    export,
    prove,
    check,
)
for command in COMMANDS:
    audit.add_command(command)
