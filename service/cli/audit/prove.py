"""`claim-ledger audit prove` and `check`: receipts of claims."""

from datetime import datetime
from pathlib import Path
from uuid import UUID

import click

from service.app.bootstrap import Service
from service.cli.audit.absence import absence, absence_options
from service.cli.audit.checked import checked
from service.cli.audit.countersigned import countersigned_checkpoint, countersigned_option
from service.cli.audit.demands import policy_option, time_anchor_option
from service.cli.audit.evidence_file import (
    finding,
    force_option,
    out_option,
    refuse_kind,
    signed_checkpoint,
    write_whole,
    written,
)
from service.cli.audit.verify import note_in, opened, public_key_of
from service.cli.faults import one_line
from service.cli.options import json_option
from service.cli.output import print_answer
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings
from service.core.clock import timestamp
from service.core.errors import Refusal
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.checkpoints.stored import KeyMissing
from service.evidence.demands import Demands
from service.evidence.export.format import EvidenceFault
from service.evidence.export.receipt_writer import (
    begins,
    find_claim,
    make_receipt,
    numbered_stream,
)
from service.evidence.export.standard_proofs import COSE, FORMATS, proof_files
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.policy import Policy
from service.evidence.proofs.streams import ClaimName
from service.evidence.time_stamp import TimeAnchor, stamped_before


@team_command
@click.argument("claim_id", required=False)
@out_option
@force_option
@countersigned_option
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    help="Also write each event's proof in this format, beside the receipt; can be given twice.",
)
@absence_options
async def prove(
    target: Target,
    claim_id: str | None,
    out: Path,
    formats: tuple[str, ...],
    absent: ClaimName | None,
    at: str | None,
    *,
    force: bool,
    is_countersigned: bool,
) -> Fields:
    """Write a claim's receipt: its events, each with the proof that it is in the signed log.

    Beside a receipt FILE, `--format` writes for each event FILE.<position>.tlog-proof (C2SP) or
    FILE.<position>.cose (a COSE receipt, RFC 9942), and FILE.<position>.entry, of which the event's
    leaf is the hash: what programs of others take.

    Only events are trusted. A claim that the read models do not know, or show otherwise, is
    searched for in the whole log, which takes a while.

    With --absent it writes the proof that no such claim existed at a checkpoint: the newest one,
    that of --at, or with --countersigned the newest that others have signed. For this it signs the
    index of all streams that had begun by then, and publishes it beside the checkpoint.
    """
    if absent is not None:
        if formats:
            raise click.UsageError("--format is for receipts")
        if at is not None and is_countersigned:
            raise click.UsageError("--countersigned finds a checkpoint, and --at names one")
        return await absence(
            target, absent, at, out, force=force, is_countersigned=is_countersigned
        )
    assert claim_id is not None  # noqa: S101 - one of both is given
    ledger, stream = await _found(target.service, claim_id)
    checkpoints = target.service.checkpoints(ledger)
    try:
        with written(out, force=force) as file:
            rows = await numbered_stream(checkpoints.ledger, stream)
            covers, settings = rows[-1]["position"], target.service.settings
            signed = await (
                countersigned_checkpoint(settings, checkpoints, covers)
                if is_countersigned
                else signed_checkpoint(checkpoints, covers)
            )
            receipt = await make_receipt(checkpoints.ledger, claim_id, rows, signed)
            write_whole(file, receipt)
            key = _signing(checkpoints) if COSE in formats else None
            beside = list(proof_files(receipt, signed.checkpoint, formats, key))
            for one in beside:
                path = out.with_name(f"{out.name}.{one.ending}")
                with written(path, force=force) as proof:
                    proof.write(one.content)
    except (EvidenceFault, LedgerForked) as error:
        return finding(ledger, error)
    return {
        "ok": True,
        "file": str(out),
        "claim_id": claim_id,
        "ledger": ledger,
        "events": len(receipt.events),
        "beside": [f"{out}.{one.ending}" for one in beside],
        "size": signed.checkpoint.size,
        "origin": signed.checkpoint.origin,
    }


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--public-key",
    type=public_key_of,
    metavar="KEY",
    required=True,
    multiple=True,
    help="The key that signed; can be given more than once.",
)
@click.option(
    "--checkpoint",
    type=note_in,
    metavar="FILE",
    help="A signed checkpoint of the same size from another source; it must be identical.",
)
@policy_option
@time_anchor_option
@click.option(
    "--entry",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The entry that a tlog-proof or COSE receipt proves; default: the .entry file beside it.",
)
@click.option(
    "--earlier",
    type=note_in,
    metavar="FILE",
    help="A smaller, time-stamped checkpoint of the same origin: events that it does not cover "
    "get its time as `not_covered_at`. Needs --time-anchor.",
)
@json_option
def check(
    file: Path,
    public_key: tuple[NoteKey, ...],
    checkpoint: str | None,
    policy: Policy | None,
    time_anchor: tuple[TimeAnchor, ...],
    entry: Path | None,
    earlier: str | None,
    *,
    as_json: bool,
) -> None:
    """Verify a receipt or another proof without an installation; exits with 1 if it is not valid.

    Also a .tlog-proof or a .cose of `audit prove`, with the .entry beside it.

    With --time-anchor, all events of the receipt existed before `existed_before`, by the clock of
    the authority. With --earlier, each that the earlier checkpoint does not cover was not under the
    log's last signed root at `not_covered_at`: that it did not exist then, no time stamp can prove.
    """
    if earlier is not None and not time_anchor:
        raise click.UsageError("--earlier needs --time-anchor")
    refuse_kind(file, "export", "use `claim-ledger audit verify --export`")
    if checkpoint is not None:
        opened(checkpoint, public_key)
    answer = _checked(file, public_key, checkpoint, Demands(policy, time_anchor), entry)
    if earlier is not None and answer["ok"]:
        before = opened(earlier, public_key, "--earlier")
        answer = _with_interval(answer, before, _stamped(earlier, time_anchor))
    print_answer(answer, as_json=as_json)


def _checked(
    file: Path,
    keys: tuple[NoteKey, ...],
    kept: str | None,
    demands: Demands,
    entry: Path | None,
) -> Fields:
    try:
        with one_line(OSError, before=f"{file}: "):
            return checked(file, keys, kept, demands, entry)
    except EvidenceFault as fault:
        answer = {"ok": False, "position": fault.position, "fault": str(fault)}
        return Findings(answer, str(fault))


def _with_interval(answer: Fields, before: Checkpoint, at: datetime) -> Fields:
    """Return the answer where each event has the time at which a checkpoint did not cover it."""
    if "claim_id" not in answer:
        raise click.UsageError("--earlier is for receipts")
    if before.origin != answer["origin"] or before.size > answer["size"]:
        message = f"expected a checkpoint of {answer['origin']} up to {answer['size']} events"
        raise click.BadParameter(message, param_hint="--earlier")
    events = [
        event | ({"not_covered_at": timestamp(at)} if event["position"] > before.size else {})
        for event in answer["events"]
    ]
    answer["events"] = events
    return answer


def _stamped(note: str, anchors: tuple[TimeAnchor, ...]) -> datetime:
    try:
        return stamped_before(note, anchors)
    except NoteInvalid as error:
        raise click.BadParameter(str(error), param_hint="--earlier") from error


def _signing(checkpoints: Checkpoints) -> NoteKey:
    """Return the key that signs checkpoints; raises ClickException if there is none here."""
    try:
        return checkpoints.signing_key()
    except KeyMissing as error:
        raise click.ClickException(f"a COSE receipt is signed, and {error}") from error


async def _found(service: Service, claim_id: str) -> tuple[str, UUID]:
    """Return a claim's ledger and stream; raises Refusal (`claim_not_found`).

    The read model says where to look first, and the events confirm it.
    """
    for name, mode in service.modes.items():
        row = await mode.claim_list.by_id(claim_id)
        if row is not None and await begins(mode.ledger, row["stream_id"], claim_id):
            return name, row["stream_id"]
    for name, mode in service.modes.items():
        stream = await find_claim(mode.ledger, claim_id)
        if stream is not None:
            return name, stream
    raise Refusal("claim_not_found")
