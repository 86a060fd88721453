"""Erasures for `claim-ledger privacy`: look-ups, the erasure itself, and what is printed."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

import click

from service.cli.target import Target
from service.cli.terminal import progress
from service.cli.unread import without_effect
from service.cli.verdict import Fields, Findings
from service.core.counted import counted
from service.core.errors import Refusal
from service.evidence.checkpoints.published import ArchiveEmpty
from service.facts.caller import LEDGERS
from service.ledger.database import LedgerError
from service.ledger.following.status import read_only
from service.privacy.erase import (
    DocumentsRemain,
    ErasureDone,
    erase_alone,
    erase_claim,
    erase_entity,
)
from service.privacy.erasure_list import ErasureList, Kind
from service.privacy.erasure_subjects import Subject
from service.privacy.erasures import KeysRemain
from service.privacy.reapply import Parts

UNLISTED_SECONDS_MAX: Final = 3.0
"""A person waits for the check before an erasure; `reapply` takes all the time that it needs."""


def erasure_list(target: Target, *, takes_without_mac: bool = False) -> ErasureList:
    """Return the list outside the database; raises ClickException if none is configured."""
    service = target.service
    if service.archive is None:
        raise click.ClickException(
            "an erasure is recorded outside the database too, or a restored backup would undo it: "
            "set CLAIM_LEDGER_ARCHIVE_URL"
        )
    secrets = service.secrets.get
    return ErasureList(service.archive, secrets, takes_without_mac=takes_without_mac)


@asynccontextmanager
async def signed_out(target: Target, mode: str, subject_id: str) -> AsyncGenerator[None]:
    """Remove a person's sessions and links, before an entity or a member is erased and afterwards.

    One may begin meanwhile, and the erasure itself removes the address by which it is found.
    """
    service = target.service
    by_mode = {name: one.connection_list.address_hash for name, one in service.modes.items()}
    address_of = {**by_mode, "accounts": service.staff.address_hash}[mode]
    address = await address_of(subject_id)
    if address is None:
        yield
        return
    await target.service.sessions.forget(address)
    try:
        yield
    finally:
        await target.service.sessions.forget(address)


async def warn_of_unlisted(target: Target, listed: ErasureList) -> None:
    """Warn before an erasure if the list lacks some; skip the check if it takes too long."""
    modes = target.service.privacy(listed).values()
    with suppress(LedgerError):
        warn_of(await unlisted(modes, UNLISTED_SECONDS_MAX))


async def unlisted(modes: Iterable[Parts], seconds_max: float | None = None) -> int:
    """Return the number of erasures that the database shows and the list lacks."""
    return sum([await parts.erasures.unlisted(seconds_max) for parts in modes])


async def unpublished(target: Target) -> list[str]:
    """Return the ledgers whose checkpoints are stored while the archive of the list has none."""
    found: list[str] = []
    for ledger in LEDGERS:
        try:
            await target.service.checkpoints(ledger).check_archive()
        except ArchiveEmpty:
            found.append(ledger)
    return found


def warn_of(count: int) -> None:
    """Warn that the list may belong to another installation, or be incomplete."""
    if count:
        click.echo(
            f"warning: the database shows {count} erasures that the list does not have: is "
            "CLAIM_LEDGER_ARCHIVE_URL where this installation's erasures were listed?",
            err=True,
        )


async def find_subject(
    target: Target, listed: ErasureList, kind: Kind, subject_id: str
) -> tuple[str, Parts, Subject]:
    """Find a subject, and in which ledger; raises Refusal where there is none of its kind.

    Nor is whoever is on the team.
    """
    modes = dict(target.service.privacy(listed))
    accounts = modes.pop("accounts")
    if kind == "staff":
        return "accounts", accounts, await _former_member(accounts, subject_id)
    for mode, parts in modes.items():
        match kind:
            case "claim":
                subject = await parts.subjects.claim(subject_id)
            case "entity":
                subject = await parts.subjects.entity(subject_id)
            case "link":
                subject = await parts.subjects.link(subject_id)
        if subject is not None:
            return mode, parts, subject
    for mode, parts in modes.items() if kind == "claim" else ():
        # Its row was lost, or is another claim's now: only the log can say that there is none.
        subject = await parts.subjects.claim_by_log(subject_id, progress)
        if subject is not None:
            return mode, parts, subject
    raise Refusal(f"{kind}_not_found")


async def refuse_read_only(target: Target, mode: str, subject: Subject) -> None:
    """Raise Refusal where PostgreSQL takes no writes, as a replica's.

    The erasure would be listed in the archive, which is not the database's, and go no further.
    """
    for ledger in target.service.ledgers:
        refused = await read_only(ledger) if ledger.name in {mode, "accounts"} else None
        if refused is not None:
            message = f"{subject.subject_id} is not erased: {refused}."
            raise Refusal("service_unavailable", message)


async def _former_member(accounts: Parts, staff_id: str) -> Subject:
    """Return whoever was on the team; raises Refusal `staff_not_found`, `staff_present`."""
    member = await accounts.subjects.staff_by_log(staff_id, progress)
    if member is None:
        raise Refusal("staff_not_found", "Nobody has this id on the team, or had it.")
    if await accounts.subjects.is_on_the_team(member):
        raise Refusal("staff_present")
    return member


async def erase_subject(
    target: Target, mode: str, parts: Parts, subject: Subject, reason: str, *, with_claims: bool
) -> ErasureDone:
    """Erase a subject with its documents, and show the progress of an entity's erasure.

    The person behind an entity, and a member of the team, are signed out.

    Raises ClickException where the database keeps a key.
    """
    cause = target.cause
    try:
        if subject.kind == "claim":
            return await erase_claim(parts, subject, reason, cause)
        if subject.kind == "link":
            return await erase_alone(parts, subject, reason, cause)
        async with signed_out(target, mode, subject.subject_id):
            if subject.kind == "staff":
                return await erase_alone(parts, subject, reason, cause)
            return await erase_entity(
                parts, subject, reason, cause, progress, with_claims=with_claims
            )
    except KeysRemain as error:
        raise click.ClickException(f"{subject.subject_id}: {error}") from error
    except DocumentsRemain as error:
        raise Refusal("service_unavailable", _remaining(subject, error)) from error


def _remaining(subject: Subject, error: DocumentsRemain) -> str:
    if subject.kind == "claim":
        done = "The claim's key is destroyed; its documents remain"
    else:
        done = (
            f"The keys of the entity and of its {error.claims} claims are destroyed; documents of "
            f"{error.left} of them may remain, and uploads without a claim"
        )
    return (
        f"{done}: the document store is unavailable ({error}). Run the same command again when it "
        "is back."
    )


def answer_of(mode: str, subject: Subject, done: ErasureDone, *, with_claims: bool) -> Fields:
    """Return what was erased, by this call or before it; Findings where something is left to do."""
    erased = done.erased
    answer: Fields = {
        f"{subject.kind}_id": subject.subject_id,
        "mode": mode,
        "already_erased": not erased.is_new,
        "erased_at": erased.at,
        "reason": erased.reason,
        "keys_destroyed": erased.keys,
        "mail_stopped": erased.mail,
        "objects": done.objects.objects,
        "objects_left": done.objects.left,
        "unread": [one._asdict() for one in done.unread],
    }
    if subject.kind == "entity":
        answer["objects_unclaimed"] = done.unclaimed
        answer["claims"] = [
            {
                "claim_id": one.claim_id,
                "stage": one.stage,
                "erased": one.erased or (with_claims and one.claim_id not in done.foreign),
            }
            for one in done.claims
        ]
    left = _left(done)
    return Findings(answer, "; ".join(left)) if left else answer


def _left(done: ErasureDone) -> list[str]:
    """Return what somebody has to look at after an erasure, and what they do."""
    left: list[str] = []
    if done.foreign:
        left.append(
            f"{counted(len(done.foreign), 'claim')} left alone: no event says that they are this "
            "entity's, and `projections verify` shows more"
        )
    if done.unread:
        left.append(without_effect(done.unread))
    if done.objects.left:
        left.append(f"{counted(done.objects.left, 'document')} still stored")
    return left
