"""`claim-ledger documents`."""

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import click

from service.app.bootstrap import Service
from service.cli.options import Age
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.unread import without_effect
from service.cli.verdict import Fields, Findings, Fine, listed
from service.core.counted import counted
from service.documents.sweep import AnotherSweep, StillLinked, Sweep, Swept
from service.documents.unknown import known_to_nobody
from service.documents.verify import verify as verified
from service.ledger.decoding import Unread
from service.ledger.following.status import read_only
from service.ledger.ledger import Ledger
from service.privacy.erasure_list import ErasureList

HOURS_MIN: Final = 1
"""An upload URL is valid for 15 minutes, and a slow upload ends a little later."""


@team_command
async def verify(target: Target) -> Fields:
    """Compare linked documents with storage; exits with 1 if any is missing, changed or unknown.

    Documents of erased claims must be gone: they are counted separately, and reported if they
    remain. So are objects that no row and no event knows, once no upload URL for them is valid: a
    restore leaves them, and `documents sweep --unknown` removes them.
    """
    documents, erased, findings = 0, 0, list[Fields]()
    service = target.service
    for mode, ledger in service.modes.items():
        async for checked in verified(ledger.claim_documents, ledger.storage.store):
            documents += 1
            document = checked.document
            erased += document["erased"]
            if checked.fault is not None:
                ids = {name: document[name] for name in ("claim_id", "document_id", "storage_path")}
                findings.append({"mode": mode, "fault": checked.fault} | ids)
        before = await _older_than(service, ledger.ledger, timedelta(hours=HOURS_MIN))
        store, listed = ledger.storage.store, partial(_listed, service, mode)
        for path in await known_to_nobody(ledger.ledger, store, before, listed, progress):
            ids = {"claim_id": None, "document_id": None, "storage_path": path}
            findings.append({"mode": mode, "fault": "unknown"} | ids)
    return verified_answer(documents, erased, findings)


def verified_answer(documents: int, erased: int, findings: list[Fields]) -> Fields:
    """Return what a verification found, with its verdict."""
    answer: Fields = {"documents": documents, "erased": erased, "findings": findings}
    looked = f"{counted(documents, 'document')} compared, {erased:,} of them erased"
    if not findings:
        return Fine(answer, looked)
    faults = [
        f"{one['document_id'] or one['storage_path']} ({one['mode']}): {one['fault']}"
        for one in findings
    ]
    return Findings(answer, f"{listed(faults)} ({looked})")


@team_command
@click.option(
    "--older-than",
    required=True,
    type=Age(HOURS_MIN),
    help="Age in hours or days, such as `12h` or `7d`; at least `1h`.",
)
@click.option(
    "--unknown",
    "with_unknown",
    is_flag=True,
    help="Also remove objects of this installation's entities that no row and no event knows. "
    "After a restore, these are all documents that came since the backup.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would be removed.")
async def sweep(
    target: Target, older_than: timedelta, *, with_unknown: bool, dry_run: bool
) -> Fields:
    """Remove uploads that no claim refers to, also from storage.

    That none does is read from the log, each time: the read model may have lost rows. An upload
    that only an event names that this service did not write is kept: `unread` lists the event, and
    the command exits with 1. What an event names that was set aside is kept, too, because it can be
    taken back: `set_aside` counts it. With `--unknown`, `unknown` counts the objects that are left
    because the ledger has no such entity: another installation may have them in the same bucket.
    """
    service = target.service
    modes: list[Fields] = []
    unread: list[Unread] = []
    events: list[Fields] = []
    for mode, ledger in service.modes.items():
        refused = None if dry_run else await read_only(ledger.ledger)
        if refused is not None:  # by a log that may be behind, and storage is not the database's
            raise click.ClickException(f"{mode}: nothing is removed: {refused}")
        before = await _older_than(service, ledger.ledger, older_than)
        sweeping = Sweep(
            ledger.ledger,
            ledger.storage.store,
            before,
            partial(_listed, service, mode),
            dry_run=dry_run,
            with_unknown=with_unknown,
        )
        try:
            counts = _counts(await sweeping.run(progress)) | {"set_aside": sweeping.set_aside}
            counts |= {"unknown": sweeping.unknown} if with_unknown else {}
            modes.append({"mode": mode} | counts)
        except (StillLinked, AnotherSweep) as error:
            raise click.ClickException(f"{mode}: {error}") from error
        unread += sweeping.unread
        events += [{"mode": mode} | one._asdict() for one in sweeping.unread]
    answer = {"dry_run": dry_run, "modes": modes, "unread": events}
    return Findings(answer, without_effect(unread)) if unread else answer


async def _older_than(service: Service, ledger: Ledger, age: timedelta) -> datetime:
    """Return the moment by which uploads are of an age."""
    return await ledger.database.not_ahead(service.clock()) - age


async def _listed(service: Service, mode: str, claims: Collection[str]) -> Collection[str]:
    """Return those of some claims that the list of erasures has; where there is no list, none."""
    if service.archive is None:
        return ()
    return await ErasureList(service.archive, service.secrets.get).those_of(mode, claims)


def _counts(swept: list[Swept]) -> dict[str, int]:
    gone = [upload for upload in swept if upload.is_gone]
    objects = [upload.found for upload in gone if upload.found is not None]
    return {
        "uploads": len(gone),
        "objects": len(objects),
        "bytes": sum(found.size for found in objects),
        "kept": len(swept) - len(gone),
    }
