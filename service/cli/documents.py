"""`claim-ledger documents` and `claim-ledger storage`."""

import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.progress import progress
from service.cli.target import Findings, Target, team_command

if TYPE_CHECKING:
    from service.documents.sweep import Swept

HOURS_MIN: Final = 1
"""An upload URL lives for 15 minutes, and a slow upload ends a little later."""

_HOURS: Final = {"h": 1, "d": 24}


class Age(click.ParamType[timedelta, str]):
    """Hours or days, such as 12h or 7d."""

    name = "age"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the duration; fails on what is none, or too short to be safe."""
        match = re.fullmatch(r"([0-9]{1,5})([hd])", value, re.ASCII)
        hours = int(match[1]) * _HOURS[match[2]] if match else 0
        if hours < HOURS_MIN:
            self.fail(f"{value!r}: expected hours or days, at least 1h, such as 7d", param, ctx)
        return timedelta(hours=hours)


@click.group()
def documents() -> None:
    """Documents of claims: audit them, sweep uploads that were never used."""


@documents.command()
@team_command
async def verify(target: Target) -> dict[str, Any]:
    """Hold every linked document against storage; ends with 1 if any is missing or changed.

    Documents of erased claims have to be gone: they are counted apart, and found if they remain.
    """
    from service.documents.verify import verify as checked

    documents, erased, findings = 0, 0, []
    for mode, ledger in target.service.modes.items():
        async for one in checked(ledger.claim_documents, ledger.storage.store):
            documents += 1
            erased += one.document["erased"]
            if one.fault is not None:
                findings.append(
                    {"mode": mode, "fault": one.fault}
                    | {
                        name: one.document[name]
                        for name in ("claim_id", "document_id", "storage_path")
                    }
                )
    answer = {"documents": documents, "erased": erased, "findings": findings}
    return Findings(answer) if findings else answer


@documents.command()
@click.option(
    "--older-than", required=True, type=Age(), help="Age in hours or days: `12h`, `7d`; from `1h`."
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
@team_command
async def sweep(target: Target, older_than: timedelta, *, dry_run: bool) -> dict[str, Any]:
    """Remove uploads that no claim refers to, from storage too."""
    from service.documents.sweep import Sweep

    before = target.service.clock() - older_than
    modes: list[dict[str, Any]] = []
    for mode, ledger in target.service.modes.items():
        one = Sweep(ledger.ledger, ledger.storage.store, before, dry_run=dry_run)
        with progress(f"sweeping {mode}", await one.count()) as advance:
            modes.append({"mode": mode} | _counts(await one.run(advance)))
    return {"dry_run": dry_run, "modes": modes}


@click.group()
def storage() -> None:
    """The document store."""


@storage.command()
@team_command
async def check(target: Target) -> dict[str, Any]:
    """Tell in words what is wrong with the buckets, and prove uploads; ends with 1 if anything."""
    from service.app.storage import storage_for
    from service.storage.check import check as run

    settings = target.service.settings
    checks = [
        {"mode": mode} | one._asdict()
        for mode, bucket in (("live", settings.live_bucket), ("test", settings.test_bucket))
        for one in await run(partial(storage_for, settings, bucket), bucket)
    ]
    is_well = all(one["result"] != "failed" for one in checks)
    answer = {"is_well": is_well, "checks": checks}
    return answer if is_well else Findings(answer)


def _counts(swept: "list[Swept]") -> dict[str, int]:
    gone = [one for one in swept if one.is_gone]
    objects = [one.found for one in gone if one.found is not None]
    return {
        "uploads": len(gone),
        "objects": len(objects),
        "bytes": sum(one.size for one in objects),
        "kept": len(swept) - len(gone),
    }
