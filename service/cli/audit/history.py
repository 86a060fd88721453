"""`claim-ledger audit history` and `claim-ledger audit trace`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from projections.activity.reader import LOST, TimelineEntry
from service.cli.audit.evidence_file import (
    finding,
    force_option,
    signed_checkpoint,
    write_whole,
    written,
)
from service.cli.options import WholeNumber, ledger_option
from service.cli.output import Blocks
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings, Unjudged, listed
from service.core.errors import Refusal
from service.evidence.checkpoints.behind import Behind, behind
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.format import LINE_BYTES_MAX, EvidenceFault
from service.evidence.proofs.timeline import ProofTooLarge, SignedLedger, prove_history
from service.evidence.replay.footing import Footing, footing
from service.evidence.replay.history import SECRET, is_lost
from service.evidence.replay.history import history as read_history
from service.evidence.replay.log_fault import LogFault
from service.facts.caller import LEDGERS
from service.ledger.binding import UnboundEvent
from service.ledger.following.parking import NOT_OURS
from service.ledger.following.status import read_only
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer

LIMIT: Final = 1000
LIMIT_MAX: Final = 100_000

_DAMAGED: Final = "unreadable: the stored event is damaged"
_GONE: Final = "gone: only its place in the log is left"

_limit = click.option(
    "--limit",
    type=WholeNumber(1, LIMIT_MAX),
    default=LIMIT,
    show_default=True,
    help="Show at most this many events, the newest ones.",
)


_prove = click.option(
    "--prove",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the events, each proved to be in its signed log, for `audit check`.",
)


@team_command
@click.argument("subject_id", metavar="ID")
@ledger_option
@_limit
@_prove
@force_option
async def history(
    target: Target,
    subject_id: str,
    ledger: str | None,
    limit: int,
    prove: Path | None,
    *,
    force: bool,
) -> Fields:
    """Show the history of a claim, entity, link, onboarding, partner, key or document.

    Events are found by an index, the read model `activity`, and read from the log: what the index
    lost is not shown. `projections verify` compares it with the log. Where it has nothing, the log
    is read whole to find out whether that is so.

    Personal fields are named, not shown: `sealed`, or `erased` once their key is destroyed; `key
    missing` if it is gone and no erasure says so (`keys-at-rest verify` lists those). An event
    without a position has committed and is not numbered yet. Hashes of secrets are left out. Exits
    with 1 where an event is not the one that was hashed or signed, where no checkpoint covers it
    yet and this service did not write it, or where a ledger's newest published checkpoint is not
    stored: then events may be gone, also all that named the id. On a standby that has not replayed
    that checkpoint yet, it exits with 3: `behind` says which, and later events may be missing.
    """
    asked = _Asked(subject_id, [ledger] if ledger else LEDGERS, limit)
    return await _proved(target, asked, prove, force=force)


@team_command
@click.argument("request_id")
@_limit
@_prove
@force_option
async def trace(
    target: Target, request_id: str, limit: int, prove: Path | None, *, force: bool
) -> Fields:
    """Show what one request caused, over all ledgers, in order; as `audit history` does."""
    return await _proved(target, _Asked(request_id, LEDGERS, limit), prove, force=force)


class _Asked(NamedTuple):
    """Whose history, in which ledgers, and how much of it."""

    subject: str
    names: Sequence[str]
    limit: int


async def _proved(target: Target, asked: _Asked, prove: Path | None, *, force: bool) -> Fields:
    if prove is None:
        return await _timeline(target, asked)
    ledgers = [one for one in target.service.ledgers if one.name in asked.names]
    for ledger in ledgers:
        if await read_only(ledger) is None:
            await Sequencer(ledger).number_committed()
    found = await read_history(ledgers, asked.subject, asked.limit)
    named = [(one.ledger, one.position) for one in found.entries]
    last = {name: position for name, position in named if position is not None}
    if not last:
        shown = await _timeline(target, asked)
        if isinstance(shown, Findings | Unjudged):
            return shown
        raise await _nothing(ledgers, asked)
    at = ledgers[0]
    try:
        with written(prove, force=force) as file:
            signed: list[SignedLedger] = []
            for at in ledgers:
                if at.name in last:
                    checkpoints = target.service.checkpoints(at.name)
                    covering = await signed_checkpoint(checkpoints, last[at.name])
                    signed.append(SignedLedger(at, covering))
            write_whole(file, await prove_history(asked.subject, signed, named))
    except ProofTooLarge as error:
        size = f"a proof may have {LINE_BYTES_MAX:,} bytes, room for the newest {error.fits} events"
        raise click.ClickException(f"{size}: give --limit {error.fits}") from error
    except (EvidenceFault, LedgerForked) as error:
        return finding(at.name, error)
    answer = await _timeline(target, asked)
    answer["file"] = str(prove)  # in the answer itself, which may be Findings
    return answer


async def _nothing(ledgers: Sequence[Ledger], asked: _Asked) -> Refusal:
    """Return the refusal where the index has nothing: the log itself says whether there is."""
    if await is_lost(ledgers, asked.subject):
        return Refusal("not_found", LOST.format(asked.subject))
    return Refusal("not_found", f"No event of {', '.join(asked.names)} names {asked.subject}.")


async def _timeline(target: Target, asked: _Asked) -> Fields:
    subject, names, limit = asked
    ledgers = [ledger for ledger in target.service.ledgers if ledger.name in names]
    found = await read_history(ledgers, subject, limit)
    rests, faults, late = [], list[Fields](), list[Behind]()
    signed = dict.fromkeys(names, 0)
    for ledger in ledgers:
        mine = [one for one in found.entries if one.ledger == ledger.name]
        try:
            rests_on = await _footing(target, ledger, mine, late)
            signed[ledger.name] = rests_on.size
            rests.append({"ledger": ledger.name, **rests_on.shown()})
        except LogFault as error:
            faults.append({"ledger": ledger.name, "position": error.position, "fault": str(error)})
        except LedgerForked as error:
            faults.append({"ledger": ledger.name, "position": None, "fault": str(error)})
        except UnboundEvent as error:  # the lineages tell which checkpoints were published
            said = f"{error}: {NOT_OURS}"
            faults.append({"ledger": ledger.name, "position": None, "fault": said})
    if not found.entries and not faults and not late:
        raise await _nothing(ledgers, asked)
    answer: Fields = {
        "id": subject,
        "is_cut": found.is_cut,
        "rests_on": rests,
        **({"faults": faults} if faults else {}),
        **({"behind": [{"ledger": one.ledger, "size": one.size} for one in late]} if late else {}),
        "events": Blocks(_row(entry, signed[entry.ledger]) for entry in found.entries),
    }
    wrong = [f"{one['ledger']}: {one['fault']}" for one in faults]
    if wrong:
        return Findings(answer, listed(wrong))
    lacking = {one.ledger: one.size for one in late}
    return Unjudged(answer, behind(lacking)) if lacking else answer


async def _footing(
    target: Target, ledger: Ledger, entries: Sequence[TimelineEntry], late: list[Behind]
) -> Footing:
    """Return what a ledger's events rest on; raises LogFault, LedgerForked, and UnboundEvent.

    Where no checkpoint vouches for one, its MAC has to. The newest published checkpoint has to be
    stored, also where there is no event: whoever cut the log back removed those that said so. A
    standby that is behind it is added to `late`, and the newest that it has takes its place.
    """
    keys = target.service.settings.checkpoint_keys or ()
    try:
        published = await target.service.checkpoints(ledger.name).newest_published()
    except Behind as error:
        late.append(error)
        published = error.reached
    used = {one.position: one.leaf for one in entries if one.position is not None}
    found = await footing(ledger, keys, used, published)
    for entry in entries:
        if _is_foreign(entry, found.size):
            raise LogFault(entry.position, NOT_OURS)
    return found


def _is_foreign(entry: TimelineEntry, signed: int) -> bool:
    """Return whether nothing says that this service wrote an event: no checkpoint, and no MAC."""
    return not entry.is_ours and (entry.position is None or entry.position > signed)


def _row(entry: TimelineEntry, signed: int) -> Fields:
    """Return one event; a damaged one says so instead of showing its fields."""
    meta = entry.meta
    data = {name: value for name, value in (entry.data or {}).items() if name not in SECRET}
    return {
        "ledger": entry.ledger,
        "position": entry.position,
        "at": meta.at if meta else None,
        "topic": entry.topic,
        "actor": meta.actor if meta else None,
        "request_id": meta.request_id if meta else None,
        **({"fault": NOT_OURS} if _is_foreign(entry, signed) else {}),
        "personal": entry.personal,
        "data": data if meta else _GONE if entry.is_gone else _DAMAGED,
    }
