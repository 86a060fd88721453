"""What `claim-ledger privacy erase` asks, looks up and answers."""

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.asking import confirm as ask
from service.cli.progress import progress
from service.cli.target import Target
from service.core.clock import timestamp
from service.core.errors import Refusal, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from service.ledger.database import Row
    from service.ledger.events import Cause
    from service.privacy.erase import DocumentsRemain, ErasureDone
    from service.privacy.erasure_list import ErasureList
    from service.privacy.erasures import Subject
    from service.privacy.reapply import Parts

REASON_CHARACTERS_MAX: Final = 500
UNLISTED_SECONDS_MAX: Final = 3.0
"""A person waits for the look before an erasure; `reapply` takes all the time that it needs."""


def check(claim_id: str | None, entity_id: str | None, reason: str, *, with_claims: bool) -> None:
    """Refuse what cannot be meant, before anything is looked up."""
    if (claim_id is None) == (entity_id is None):
        raise click.UsageError("Give either --claim or --entity.")
    if with_claims and entity_id is None:
        raise click.UsageError("--with-claims goes with --entity.")
    if not 0 < len(reason.strip()) <= REASON_CHARACTERS_MAX:
        raise invalid("reason", f"expected 1 to {REASON_CHARACTERS_MAX} characters")
    if "@" in reason:
        raise invalid("reason", "no e-mail address: the reason stays in the log for ever")


def erasure_list(target: Target) -> "ErasureList":
    """Return the list outside the database; a fault of the settings where there is none."""
    from service.privacy.erasure_list import ErasureList

    if target.service.archive is None:
        raise click.ClickException(
            "an erasure is noted outside the database too, or a restored backup would undo it: "
            "set CLAIM_LEDGER_ARCHIVE_URL"
        )
    return ErasureList(target.service.archive)


async def sign_out(target: Target, mode: str, entity_id: str) -> None:
    """Remove sessions and links of an entity's person; its address is known until it is erased."""
    for name, ledger in target.service.modes.items():
        if name == mode:
            address = await ledger.connection_list.address_hash(entity_id)
            if address is not None:
                await target.service.sessions.forget(address)


async def warn_of_unlisted(target: Target, listed: "ErasureList") -> None:
    """Say before an erasure that the list is another's; nothing where a look takes too long."""
    from service.ledger.database import LedgerError

    modes = target.service.privacy(listed).values()
    with suppress(LedgerError):
        warn_of(await unlisted(modes, await listed.names(), UNLISTED_SECONDS_MAX))


async def unlisted(
    modes: "Iterable[Parts]", names: "Iterable[str]", seconds_max: float | None = None
) -> int:
    """Return how many erasures the database shows of which no entry of the list tells."""
    from service.privacy.erasure_list import subject_of

    subjects = [subject_of(name) for name in names]
    return sum([await parts.erasures.unlisted(subjects, seconds_max) for parts in modes])


def warn_of(count: int) -> None:
    """Say that the list may be another installation's, or a part of this one's."""
    if count:
        click.echo(
            f"warning: the database shows {count} erasures that the list does not have: is "
            "CLAIM_LEDGER_ARCHIVE_URL where this installation's erasures were listed?",
            err=True,
        )


async def find_subject(
    target: Target, listed: "ErasureList", claim_id: str | None, entity_id: str | None
) -> "tuple[str, Parts, Subject]":
    """Look for a subject in both modes; refuses with `claim_not_found` or `entity_not_found`."""
    for mode, parts in target.service.privacy(listed).items():
        if claim_id is not None:
            subject = await parts.erasures.claim(claim_id)
        else:
            subject = await parts.erasures.entity(entity_id or "")
        if subject is not None:
            return mode, parts, subject
    raise Refusal("entity_not_found" if claim_id is None else "claim_not_found")


def confirm(subject: "Subject", mode: str, *, with_claims: bool, yes: bool) -> None:
    """Ask a person; a program has to say --yes."""
    more = " and all its claims" if with_claims else ""
    ask(f"Erase the personal data of {subject.subject_id} ({mode}){more} for ever?", yes=yes)


async def erase_subject(
    parts: "Parts", subject: "Subject", reason: str, cause: "Cause", *, with_claims: bool
) -> "ErasureDone":
    """Erase a subject with its documents, showing a person how far its claims are."""
    from service.privacy.erase import DocumentsRemain, erase_claim, erase_entity

    with ExitStack() as shown:

        def each_claim(claims: "list[Row]") -> "Callable[[int], object]":
            return shown.enter_context(progress("erasing claims", 2 * len(claims)))

        try:
            if subject.kind == "claim":
                return await erase_claim(parts, subject, reason, cause)
            told = each_claim if with_claims else None
            return await erase_entity(parts, subject, reason, cause, told)
        except DocumentsRemain as error:
            raise Refusal("service_unavailable", _remaining(subject, error)) from error


def _remaining(subject: "Subject", error: "DocumentsRemain") -> str:
    if subject.kind == "claim":
        done = "The claim's key is destroyed; its documents remain"
    else:
        done = (
            f"The keys of the entity and of its {error.claims} claims are destroyed; documents of "
            f"{error.left} of them may remain"
        )
    return (
        f"{done}: the document store is unavailable ({error}). Run the same command again when it "
        "is back."
    )


def answer_of(
    mode: str, subject: "Subject", done: "ErasureDone", *, with_claims: bool
) -> dict[str, Any]:
    """Return what was erased, by this call or before it."""
    erased = done.erased
    answer: dict[str, Any] = {
        f"{subject.kind}_id": subject.subject_id,
        "mode": mode,
        "already_erased": not erased.is_new,
        "erased_at": timestamp(erased.at),
        "reason": erased.reason,
        "keys_destroyed": erased.keys,
        "mail_stopped": erased.mail,
        "objects": done.objects.objects,
        "objects_left": done.objects.left,
    }
    if subject.kind == "entity":
        answer["claims"] = [
            {
                "claim_id": row["claim_id"],
                "stage": row["stage"],
                "erased": row["erased"] or with_claims,
            }
            for row in done.claims
        ]
    return answer
