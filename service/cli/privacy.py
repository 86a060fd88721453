"""`claim-ledger privacy`: erasing a person's data, and telling where it is."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from service.cli.erasing import (
    answer_of,
    check,
    confirm,
    erase_subject,
    erasure_list,
    find_subject,
    sign_out,
    unlisted,
    warn_of,
    warn_of_unlisted,
)
from service.cli.progress import progress
from service.cli.target import Findings, Target, team_command
from service.core.clock import timestamp
from service.core.errors import invalid

if TYPE_CHECKING:
    from service.privacy.reapply import ReapplyOutcome


@click.group()
def privacy() -> None:
    """Personal data: erase it, find it, erase it again after a restore."""


@privacy.command()
@click.option("--claim", "claim_id", metavar="ID", help="Erase what a claim holds of people.")
@click.option("--entity", "entity_id", metavar="ID", help="Erase what an entity holds of people.")
@click.option(
    "--reason",
    required=True,
    help="Why; it stays in the log for ever, so name a case and nobody.",
)
@click.option("--with-claims", is_flag=True, help="Erase an entity's claims as well.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")
@team_command
async def erase(
    target: Target,
    *,
    claim_id: str | None,
    entity_id: str | None,
    reason: str,
    with_claims: bool,
    yes: bool,
) -> dict[str, Any]:
    """Destroy the key of a claim's or an entity's personal data; it cannot be undone.

    Look-ups, waiting mail and stored documents go with it; ids, times, stages and the reason stay.
    An entity's claims are subjects of their own: they are listed, and stay without `--with-claims`.
    """
    check(claim_id, entity_id, reason, with_claims=with_claims)
    listed = erasure_list(target)
    mode, parts, subject = await find_subject(target, listed, claim_id, entity_id)
    await warn_of_unlisted(target, listed)
    confirm(subject, mode, with_claims=with_claims, yes=yes)
    if subject.kind == "entity":
        await sign_out(target, mode, subject.subject_id)
    done = await erase_subject(
        parts, subject, reason.strip(), target.cause, with_claims=with_claims
    )
    answer = answer_of(mode, subject, done, with_claims=with_claims)
    return Findings(answer) if done.objects.left else answer


@privacy.command()
@click.argument("email")
@team_command
async def find(target: Target, email: str) -> dict[str, Any]:
    """Tell where a person's data is, by opening every sealed box: places and fields, no values.

    What documents contain is not searched. Events that cannot be read are listed: then it ends
    with 1.
    """
    from service.privacy.find import Search
    from service.privacy.text_search import Sought

    address = email.strip()
    if "@" not in address:
        raise invalid("email", "expected an e-mail address")
    secrets = await target.service.secrets.get()
    sought = Sought(address, secrets.lookup_email(address))
    found: list[dict[str, Any]] = []
    unread: list[dict[str, Any]] = []
    for ledger in target.service.ledgers:
        search = Search(ledger, sought)
        with progress(f"searching {ledger.name}", await search.size()) as advance:
            found += [place._asdict() async for place in search.places(advance)]
        unread += [
            {"ledger": ledger.name} | one._asdict() | {"stream_id": str(one.stream_id)}
            for one in search.unread
        ]
    answer = {"places": len(found), "found": found, "unread": unread}
    return Findings(answer) if unread else answer


@privacy.command()
@team_command
async def reapply(target: Target) -> dict[str, Any]:
    """After a restore: do every erasure of the list that the database does not show.

    All keys first, then documents. What fails is listed under `faults`, holds up nothing else and
    ends with 1. So do erasures that the database shows and the list does not have: it is then the
    list of another installation, or a part of it.
    """
    from service.privacy.reapply import Reapply

    listed = erasure_list(target)
    modes = target.service.privacy(listed)
    names = await listed.names()
    again = Reapply(listed, modes, partial(sign_out, target), target.cause)
    with progress("reapplying", 2 * len(names)) as advance:
        outcome = await again.run(names, advance)
    answer = _reapplied(names, outcome, await unlisted(modes.values(), names))
    warn_of(answer["unlisted"])
    wrong = answer["unlisted"] or answer["failed"] or answer["objects_left"]
    return Findings(answer) if wrong else answer


def _reapplied(names: list[str], outcome: "ReapplyOutcome", unlisted_count: int) -> dict[str, Any]:
    """Count what the database showed already, what it has no more, and name what was done."""
    done = outcome.done
    return {
        "listed": len(names),
        "unlisted": unlisted_count,
        "shown": sum(one.erased is not None and not one.changed for one in done),
        "absent": sum(one.erased is None for one in done),
        "failed": len(outcome.faults),
        "objects_left": sum(one.objects_left for one in done),
        "applied": [
            {
                "mode": one.entry.ledger,
                "subject": one.entry.subject,
                "asked_at": timestamp(one.entry.at),
                "keys_destroyed": one.erased.keys,
                "objects": one.objects,
            }
            for one in done
            if one.erased is not None and one.changed
        ],
        "faults": [fault._asdict() for fault in outcome.faults],
    }
