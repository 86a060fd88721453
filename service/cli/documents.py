"""`claim-ledger documents`."""

from collections.abc import Collection
from datetime import timedelta
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
from service.documents.verify import verify as verified
from service.ledger.decoding import Unread
from service.privacy.erasure_list import ErasureList

HOURS_MIN: Final = 1
"""An upload URL is valid for 15 minutes, and a slow upload ends a little later."""


@team_command
async def verify(target: Target) -> Fields:
    """Compare every linked document with storage; exits with 1 if any is missing or changed.

    Documents of erased claims must be gone: they are counted separately, and reported if they
    remain.
    """
    documents, erased, findings = 0, 0, list[Fields]()
    for mode, ledger in target.service.modes.items():
        async for checked in verified(ledger.claim_documents, ledger.storage.store):
            documents += 1
            document = checked.document
            erased += document["erased"]
            if checked.fault is not None:
                ids = {name: document[name] for name in ("claim_id", "document_id", "storage_path")}
                findings.append({"mode": mode, "fault": checked.fault} | ids)
    return verified_answer(documents, erased, findings)


def verified_answer(documents: int, erased: int, findings: list[Fields]) -> Fields:
    """Return what a verification found, with its verdict."""
    answer: Fields = {"documents": documents, "erased": erased, "findings": findings}
    looked = f"{counted(documents, 'document')} compared, {erased:,} of them erased"
    if not findings:
        return Fine(answer, looked)
    faults = [f"{one['document_id']} ({one['mode']}): {one['fault']}" for one in findings]
    return Findings(answer, f"{listed(faults)} ({looked})")


@team_command
@click.option(
    "--older-than",
    required=True,
    type=Age(HOURS_MIN),
    help="Age in hours or days, such as `12h` or `7d`; at least `1h`.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would be removed.")
async def sweep(target: Target, older_than: timedelta, *, dry_run: bool) -> Fields:
    """Remove uploads that no claim refers to, also from storage.

    That none does is read from the log, each time: the read model may have lost rows. An upload
    that only an event names that this service did not write is kept: `unread` lists the event, and
    the command exits with 1. What an event names that was set aside is kept, too, because it can be
    taken back: `set_aside` counts it.
    """
    service = target.service
    modes: list[Fields] = []
    unread: list[Unread] = []
    events: list[Fields] = []
    for mode, ledger in service.modes.items():
        before = await ledger.ledger.database.not_ahead(service.clock()) - older_than
        listed = partial(_listed, service, mode)
        sweeping = Sweep(ledger.ledger, ledger.storage.store, before, listed, dry_run=dry_run)
        try:
            counts = _counts(await sweeping.run(progress))
            modes.append({"mode": mode} | counts | {"set_aside": sweeping.set_aside})
        except (StillLinked, AnotherSweep) as error:
            raise click.ClickException(f"{mode}: {error}") from error
        unread += sweeping.unread
        events += [{"mode": mode} | one._asdict() for one in sweeping.unread]
    answer = {"dry_run": dry_run, "modes": modes, "unread": events}
    return Findings(answer, without_effect(unread)) if unread else answer


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
