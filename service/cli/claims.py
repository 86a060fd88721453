"""`claim-ledger claims`."""

import click
import msgspec

from service.claims.commands import ClaimCommands
from service.cli.faults import one_line
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings
from service.core.errors import Refusal
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.replay.footing import Footing, stream_footing
from service.evidence.replay.log_fault import LogFault
from service.facts.caller import Mode
from service.facts.claims import STAGES, Claim
from service.ledger.events import ERASED, KEY_MISSING

_NOT_SHOWN = {"fingerprint", "fingerprint_version", "details"}
"""Fields of `ClaimCreated` that are not shown as they are."""


@team_command
@click.argument("claim_id")
async def show(target: Target, claim_id: str) -> Fields:
    """Show a claim, folded from its events.

    What was erased is not shown, even if its key came back. Exits with 1 if the key of its personal
    data is missing although nobody erased it (`keys-at-rest verify` lists those). Nothing is shown
    of a claim whose events are not those that were hashed and signed, or of whose ledger the newest
    published checkpoint is not stored.
    """
    mode, commands = await _find(target, claim_id)
    with one_line(
        LogFault, LedgerForked, before=f"{claim_id}: ", after="; `audit verify` shows more"
    ):
        rests = await _footing(target, mode, commands, claim_id)
    claim = await commands.show(claim_id)
    answer = _answer(mode, claim) | {"rests_on": rests.shown()}
    if claim.personal != "key missing":
        return answer
    return Findings(answer, "the key of its personal data is gone, and no erasure says so")


@team_command
@click.argument("claim_id")
@click.argument("stage", type=click.Choice(STAGES))
async def move(target: Target, claim_id: str, stage: str) -> Fields:
    """Move a claim to another stage."""
    mode, commands = await _find(target, claim_id)
    return _answer(mode, await commands.move(claim_id, stage, target.cause))


async def _find(target: Target, claim_id: str) -> tuple[Mode, ClaimCommands]:
    """Find a claim in either mode, and record that its personal data is about to be printed."""
    for mode, ledger in target.service.modes.items():
        if await ledger.claim_list.by_id(claim_id) is not None:
            await target.service.staff.opened(target.staff_id, claim_id, target.cause)
            return mode, ledger.claims
    raise Refusal("claim_not_found")


async def _footing(target: Target, mode: Mode, commands: ClaimCommands, claim_id: str) -> Footing:
    """Return what a claim's events rest on; raises LogFault, and LedgerForked."""
    row = await commands.claims.by_id(claim_id)
    if row is None:
        raise Refusal("claim_not_found")
    keys = target.service.settings.checkpoint_keys or ()
    published = await target.service.checkpoints(mode).newest_published()
    return await stream_footing(commands.ledger, keys, row["stream_id"], published)


def _answer(mode: Mode, claim: Claim) -> Fields:
    created = claim.created
    if created is None:
        raise Refusal("claim_not_found")
    fields = msgspec.structs.asdict(created)
    references = {name: value for name, value in fields.items() if name not in _NOT_SHOWN}
    return {
        "claim_id": claim.claim_id,
        "mode": mode,
        "stage": claim.stage,
        **references,
        "message_id": claim.message.message_id if claim.message else None,
        "message": _shown(claim, claim.message.text) if claim.message else None,
        **(created.details or {}),
        "documents": _documents(claim),
        "personal": claim.personal,
        "erased": claim.erased,
    }


def _shown(claim: Claim, text: str | None) -> str | None:
    """Return a personal text, or what became of it."""
    match claim.personal:
        case "readable":
            return text
        case "erased":
            return ERASED
        case "key missing":
            return KEY_MISSING


def _documents(claim: Claim) -> list[Fields]:
    """Return what is attached, with the partner's filenames or what became of them.

    `flags` are what checks of the content found.
    """
    if claim.attached is None:
        return []
    documents = claim.attached.documents
    filenames = claim.attached.filenames or [None] * len(documents)
    return [
        {
            "filename": _shown(claim, filename),
            **msgspec.structs.asdict(document),
            "flags": [
                f"{one.reason}: {one.detail}"
                for one in claim.flags
                if one.document_id == document.document_id
            ],
        }
        for filename, document in zip(filenames, documents, strict=True)
    ]
