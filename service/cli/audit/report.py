"""`claim-ledger audit report`: everything about somebody or something in a period."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

import click

from service.cli.audit.countersigned import countersigned_checkpoint, countersigned_option
from service.cli.audit.evidence_file import (
    finding,
    force_option,
    out_option,
    signed_checkpoint,
    written,
)
from service.cli.instant import instant
from service.cli.options import ledger_option
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields, Findings, Fine
from service.core.counted import counted
from service.core.errors import Refusal
from service.core.extras import extra
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import EvidenceFault
from service.evidence.replay.log_fault import LogFault
from service.evidence.report.known import is_named
from service.evidence.report.lines import LogPart, Period, ReportReader, ReportSubject, part_of
from service.evidence.report.names import Names
from service.evidence.report.writers import Cover, CsvWriter, NdjsonWriter, Proof, Writer
from service.ledger.ledger import Ledger

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
"""With room for the moment before it, which a period begins after."""
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_NO_PDF: Final = f"PDF needs reportlab: {extra('reports')}"


def _since(text: str) -> datetime:
    """Return the beginning of a day in UTC, or an instant."""
    return max(_FIRST, instant(f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text))


def _until(text: str) -> datetime:
    """Return the end of a day in UTC, or an instant."""
    since = _since(text)
    day = timedelta(days=1) if _DAY.fullmatch(text) else timedelta()
    return since + min(day, _LAST - since)


def _pdf(out: BinaryIO, cover: Cover) -> Writer:
    try:
        from service.evidence.report.pdf import PdfWriter  # noqa: PLC0415 - an extra of its own
    except ImportError as error:
        raise click.ClickException(_NO_PDF) from error
    return PdfWriter(out, cover)


_WRITERS: Final[dict[str, Callable[[BinaryIO, Cover], Writer]]] = {
    "ndjson": NdjsonWriter,
    "csv": CsvWriter,
    "pdf": _pdf,
}


@team_command
@out_option
@force_option
@click.option("--partner", "partner_id", metavar="ID", help="What concerns this partner.")
@click.option("--entity", "entity_id", metavar="ID", help="What concerns this entity.")
@click.option("--claim", "claim_id", metavar="ID", help="What concerns this claim.")
@click.option(
    "--from",
    "since",
    type=_since,
    metavar="DATE",
    required=True,
    help="The first day, in UTC, such as `2026-03-01`, or a moment.",
)
@click.option(
    "--to",
    "until",
    type=_until,
    metavar="DATE",
    required=True,
    help="The last day, in UTC, or the moment before which the period ends.",
)
@ledger_option
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_WRITERS)),
    default="ndjson",
    show_default=True,
    help="PDF and NDJSON carry the signed checkpoints; CSV is for spreadsheets.",
)
@countersigned_option
async def report(
    target: Target,
    out: Path,
    since: datetime,
    until: datetime,
    ledger: str | None,
    form: str,
    *,
    force: bool,
    is_countersigned: bool,
    **ids: str | None,
) -> Fields:
    """Write everything about a partner, entity or claim in a period to a file.

    Read from the log itself, event by event, with the position of each and the names of who acted.
    Each hash is made again, and led to a signed checkpoint. Personal fields are named, not shown.
    On a standby that has not replayed all that was published, it writes nothing and exits with 3.
    """
    subject, period = _subject(ids), Period(since, until)
    if since >= until:
        raise click.BadParameter("the period ends before it begins", param_hint="--to")
    service = target.service
    ledgers = [one for one in service.ledgers if ledger in {None, one.name}]
    keys, proofs, at = service.settings.checkpoint_keys or (), list[Proof](), service.accounts
    published = dict[str, Checkpoint | None]()
    try:
        for at in ledgers:  # before anything is denied: a standby may be behind
            published[at.name] = await service.checkpoints(at.name).newest_published()
        doubt = await _refuse_unknown(target, ledgers, subject)
        if doubt is not None:
            return doubt
        names = await Names.read(service.accounts)
        cover = Cover(subject, names.of_id(subject.id), period, service.clock())
        with written(out, force=force) as file:
            writer = _WRITERS[form](file, cover)
            readers = dict[str, ReportReader]()
            for at in ledgers:  # what has no checkpoint is known before hours of reading
                checkpoints = service.checkpoints(at.name)
                part = await part_of(at, period, keys, published[at.name])
                covering = await _covering(target, part, is_countersigned=is_countersigned)
                reader = ReportReader(checkpoints, part, subject, names, covering)
                readers[at.name] = reader
            for at in ledgers:
                proofs.append(await _written(readers[at.name], writer))
            writer.end(proofs)
    except LogFault as error:
        fault = {"ledger": at.name, "position": error.position, "fault": str(error)}
        return Findings({"ok": False, **fault}, f"{at.name} {error.position}: {error}")
    except (EvidenceFault, LedgerForked) as error:
        return finding(at.name, error)
    events = sum(one.events for one in proofs)
    shown: Fields = {
        "ok": True,
        "file": str(out),
        subject.field: subject.id,
        "from": period.since,
        "until": period.until,
        "events": events,
        "rests_on": [_shown(one) for one in proofs],
    }
    return Fine(shown, f"{counted(events, 'event')} in {out}")


def _subject(ids: Mapping[str, str | None]) -> ReportSubject:
    given = [ReportSubject(field, value) for field, value in ids.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError("give one of --partner, --entity and --claim")
    return given[0]


async def _refuse_unknown(
    target: Target, ledgers: Sequence[Ledger], subject: ReportSubject
) -> Fields | None:
    """Raise Refusal for a subject that no event names, if the logs are what was signed.

    Return the finding if they are not, and None for a subject that is known.
    """
    for ledger in ledgers:
        if await is_named(ledger, subject):
            return None
    for ledger in ledgers:
        try:
            signed = await signed_checkpoint(target.service.checkpoints(ledger.name))
            if await is_named(ledger, subject, signed.checkpoint):
                return None
        except (EvidenceFault, LedgerForked) as error:
            return finding(ledger.name, error)
    names = ", ".join(ledger.name for ledger in ledgers)
    raise Refusal("not_found", f"No event of {names} names {subject.id}.")


async def _covering(target: Target, part: LogPart, *, is_countersigned: bool) -> Signed | None:
    """Return the checkpoint that a part has to rest on, None for the first one that covers it."""
    if part.last == part.after:
        return None
    checkpoints = target.service.checkpoints(part.ledger)
    if is_countersigned:
        return await countersigned_checkpoint(target.service.settings, checkpoints, part.last)
    await signed_checkpoint(checkpoints, part.last, ": an earlier --to asks for fewer")
    return None


async def _written(reader: ReportReader, writer: Writer) -> Proof:
    """Write the lines of one ledger; return what they rest on."""
    part = reader.part
    with progress(f"reading {part.ledger}", part.last - part.after, unit="events") as advance:
        async for line in reader.lines(advance):
            writer.line(line)
    return Proof(part, reader.count, reader.note)


def _shown(proof: Proof) -> Fields:
    checkpoint = None if proof.note is None else Checkpoint.of_note(proof.note)
    return {
        "ledger": proof.part.ledger,
        "after_position": proof.part.after,
        "last_position": proof.part.last,
        "events": proof.events,
        "origin": checkpoint and checkpoint.origin,
        "size": checkpoint and checkpoint.size,
    }
