"""The option by which files get a checkpoint that others have signed already."""

from typing import Final

import click

from service.app.settings import Settings
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.countersigning.search import newest_countersigned
from service.evidence.demands import NO_DEMANDS, Demands
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import open_checkpoint
from service.evidence.note import NoteInvalid

countersigned_option: Final = click.option(
    "--countersigned",
    "is_countersigned",
    is_flag=True,
    help="Use the newest checkpoint that has the witnesses' quorum and the time stamp that the "
    "settings ask for, instead of signing one now.",
)


async def countersigned_checkpoint(
    settings: Settings, checkpoints: Checkpoints, covers: int = 0
) -> Signed:
    """Return the newest checkpoint of the present lineage of which others have signed their part.

    It covers so many events. Raises UsageError where nobody is asked to sign, ClickException where
    there is none, and EvidenceFault if none of our keys signed it.
    """
    anchor = settings.time_stamp_anchor_file
    demands = Demands(settings.witness_policy_file, () if anchor is None else (anchor,))
    if demands == NO_DEMANDS:
        raise click.UsageError("--countersigned: the settings name no witness and no authority")
    latest, ledger = await checkpoints.latest(), checkpoints.ledger
    origin = None if latest is None else latest[0].origin
    async with ledger.database.background.connection() as connection:
        try:
            note, _ = await newest_countersigned(
                connection,
                ledger.name,
                demands,
                lambda of, size: of == origin and size >= covers,
            )
        except NoteInvalid as error:
            raise click.ClickException(
                f"no checkpoint of {covers} events or more will do: {error}; the worker asks for "
                "signatures of each new one"
            ) from error
    return Signed(open_checkpoint(note, checkpoints.keys, "the stored checkpoint"), note)
