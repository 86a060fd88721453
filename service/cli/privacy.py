"""`claim-ledger privacy`: erasing a person's data, and telling where it is."""

from typing import TYPE_CHECKING, Any

import click

from service.cli.erasing import answer_of, check, confirm, erase_subject, erasure_list, find_subject
from service.cli.progress import progress
from service.cli.target import Findings, Target, team_command
from service.clock import timestamp
from service.errors import invalid

if TYPE_CHECKING:
    from service.privacy.reapply import Reapplied


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
    confirm(subject, mode, with_claims=with_claims, yes=yes)
    await _sign_out(target, mode, entity_id)
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

    Ends with 1 too where the database shows erasures that the list does not have: it is then the
    list of another installation, or a part of it.
    """
    from service.privacy.erasure_list import EntryUnreadable
    from service.privacy.reapply import reapply as again

    listed = erasure_list(target)
    modes = target.service.privacy(listed)
    try:
        with progress("reapplying", len(await listed.names())) as advance:
            done = await again(listed, modes, target.cause, advance)
    except EntryUnreadable as error:
        raise click.ClickException(f"{error}: nothing after it was done") from error
    entries = [one.entry for one in done]
    unlisted = sum([await parts.erasures.unlisted(entries) for parts in modes.values()])
    if unlisted:
        click.echo(
            f"warning: the database shows {unlisted} erasures that the list does not have: is "
            "CLAIM_LEDGER_PUBLISH_TO where this installation's erasures were listed?",
            err=True,
        )
    answer = _reapplied(done, unlisted)
    return Findings(answer) if unlisted or answer["objects_left"] else answer


def _reapplied(done: "list[Reapplied]", unlisted: int) -> dict[str, Any]:
    """Count what the database showed already, what it has no more, and name what was done."""
    return {
        "listed": len(done),
        "unlisted": unlisted,
        "shown": sum(one.erased is not None and not one.changed for one in done),
        "absent": sum(one.erased is None for one in done),
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
    }


async def _sign_out(target: Target, mode: str, entity_id: str | None) -> None:
    """Remove the sessions and links of an entity's person, while its address can be found."""
    for name, ledger in target.service.modes.items():
        if name == mode and entity_id is not None:
            address = await ledger.connection_list.address_hash(entity_id)
            if address is not None:
                await target.service.sessions.forget(address)
