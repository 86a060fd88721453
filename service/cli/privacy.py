"""`claim-ledger privacy`: erase a person's data, and find where it is."""

from functools import partial
from pathlib import Path
from typing import Final

import click
import msgspec

from service.cli.audit.evidence_file import force_option, out_option, written
from service.cli.erasing import (
    answer_of,
    erase_subject,
    erasure_list,
    find_subject,
    refuse_read_only,
    signed_out,
    unlisted,
    unpublished,
    warn_of,
    warn_of_unlisted,
)
from service.cli.faults import one_line
from service.cli.options import yes_option
from service.cli.output import Spool
from service.cli.target import Target, team_command
from service.cli.terminal import confirm, progress
from service.cli.verdict import Fields, Findings, Fine
from service.core.counted import counted
from service.core.errors import invalid
from service.core.invisible_characters import visible
from service.ledger.decoding import Unread
from service.ledger.scan import appended
from service.privacy.erasure_list import Kind
from service.privacy.find import Search
from service.privacy.held import HeldData, NothingToRead
from service.privacy.reapply import Reapply, ReapplyOutcome
from service.privacy.text_search import Sought

REASON_CHARACTERS_MAX: Final = 500
TEXT_CHARACTERS_MIN: Final = 2
TEXT_CHARACTERS_MAX: Final = 500


@team_command
@click.option("--claim", "claim_id", metavar="ID", help="Erase the personal data of a claim.")
@click.option("--entity", "entity_id", metavar="ID", help="Erase the personal data of an entity.")
@click.option("--link", "link_id", metavar="ID", help="Erase the label of a connect link.")
@click.option("--staff", "staff_id", metavar="ID", help="Erase who was removed from the team.")
@click.option(
    "--reason",
    required=True,
    help="The reason. It stays in the log forever: name a case, not a person.",
)
@click.option("--with-claims", is_flag=True, help="Erase an entity's claims as well.")
@yes_option
async def erase(
    target: Target,
    *,
    claim_id: str | None,
    entity_id: str | None,
    link_id: str | None,
    staff_id: str | None,
    reason: str,
    with_claims: bool,
    yes: bool,
) -> Fields:
    """Destroy the key of a subject's personal data. This cannot be undone.

    Look-ups, pending mail and stored documents are removed too; ids, times, stages and the reason
    stay. An entity's claims are separate: they are listed, and stay without `--with-claims`, and so
    do uploads that are of none of them, which `objects_unclaimed` counts (null: storage could not
    be asked). Claims, and the links that it redeemed, are read from the whole log. A link that
    nobody has redeemed is erased by its own id, and cannot be redeemed afterwards. Events that this
    service did not write do not stop it: `unread` lists them, and it exits with 1. So it does, with
    nothing erased, where the database does not destroy the key.
    """
    kind, subject_id = _one(
        ("claim", claim_id), ("entity", entity_id), ("link", link_id), ("staff", staff_id)
    )
    _check(kind, reason, with_claims=with_claims)
    listed = erasure_list(target)
    mode, parts, subject = await find_subject(target, listed, kind, subject_id)
    await refuse_read_only(target, mode, subject)
    await warn_of_unlisted(target, listed)
    what = f"{subject.subject_id} ({mode}){' and all its claims' if with_claims else ''}"
    # It is in the log and in the archive, which nobody can change: a name would stay for ever.
    kept = f'The reason stays in the log and the archive forever: "{visible(reason.strip())}"'
    confirm(f"{kept}\nPermanently erase the personal data of {what}?", yes=yes)
    done = await erase_subject(
        target, mode, parts, subject, reason.strip(), with_claims=with_claims
    )
    return answer_of(mode, subject, done, with_claims=with_claims)


@team_command
@click.argument("email", required=False)
@click.option("--text", help="A text, such as a name, instead of an address; case is ignored.")
async def find(target: Target, email: str | None, text: str | None) -> Fields:
    """Find a person's data by decrypting all personal data; shows places and fields, no values.

    It searches for an email address, or with `--text` for any part of a text: a debtor may have no
    address. `subject` is the id of the claim, entity, link, partner or member of the team whose
    event it is. The contents of documents are not searched. Events that cannot be read are listed,
    and it exits with 1.
    """
    sought = await _sought(target, email, text)
    found = Spool()
    unread: list[Fields] = []
    for ledger in target.service.ledgers:
        search = Search(ledger, sought)
        with progress(f"searching {ledger.name}", await appended(ledger)) as advance:
            async for place in search.places(advance):
                found.add(place._asdict())
        unread += [{"ledger": ledger.name} | event._asdict() for event in search.unread]
    answer = {"places": len(found), "found": found, "unread": unread}
    unsure = f"{counted(len(unread), 'event')} that cannot be read, and may name them"
    return Findings(answer, unsure) if unread else answer


@team_command
@click.option("--claim", "claim_id", metavar="ID", help="Copy the personal data of a claim.")
@click.option("--entity", "entity_id", metavar="ID", help="Copy the personal data of an entity.")
@out_option
@force_option
async def copy(
    target: Target, *, claim_id: str | None, entity_id: str | None, out: Path, force: bool
) -> Fields:
    """Write the personal data that is held on a claim or an entity to a file, as JSON.

    Each event with personal fields, where they are from, and when they came: what its own key
    opens, and no other's. For an entity, also the labels of the links that it redeemed; its claims
    are separate. Documents are not in it. The file's mode is 0600. Refuses what was erased. Events
    that cannot be read are listed, and it exits with 1. That a claim's data was opened is recorded.
    """
    kind, subject_id = _one(("claim", claim_id), ("entity", entity_id))
    mode, parts, subject = await find_subject(target, erasure_list(target), kind, subject_id)
    (ledger,) = (one for one in target.service.ledgers if one.name == mode)
    data = HeldData(ledger, subject)
    with one_line(NothingToRead, before=f"{subject_id}: "):
        await data.check()
    if kind == "claim":
        await target.service.staff.opened(target.staff_id, subject_id, target.cause)
    links, unread = list[str](), list[Unread]()
    if kind == "entity":
        named = await parts.subjects.named(subject, progress)
        links, unread = list(named.links), list(named.unread)
    count, about = 0, {f"{kind}_id": subject_id, "mode": mode, "copied_at": target.service.clock()}
    with written(out, force=force, mode=0o600) as file:
        file.write(b'%b,"events":[' % msgspec.json.encode(about)[:-1])
        async for held in data.events(links, progress):
            file.write(b",\n" if count else b"\n")
            file.write(msgspec.json.encode(held._asdict()))
            count += 1
        file.write(b"\n]}\n")
    unread += data.unread
    answer = {
        f"{kind}_id": subject_id,
        "mode": mode,
        "events": count,
        "file": str(out),
        "unread": [one._asdict() for one in unread],
    }
    unsure = f"{counted(len(unread), 'event')} that cannot be read, and may be of it"
    return Findings(answer, unsure) if unread else answer


@team_command
@click.option(
    "--without-mac",
    is_flag=True,
    help="Also apply entries without a MAC, as earlier releases wrote them. It trusts everybody "
    "who could write to the archive: they can add such an entry, or alter one and remove its MAC, "
    "and it destroys the keys that it names.",
)
async def reapply(target: Target, *, without_mac: bool) -> Fields:
    """After a restore, redo every listed erasure that the database does not show.

    All keys come first, then documents. A failure is listed under `faults`, does not hold up the
    rest, and makes it exit with 1; `keys_left` counts the keys that are still there. So do erasures
    that the database shows but the list lacks, and checkpoints of which the archive has none: it is
    then the list of another installation, or only a part of it. An entry that this service did not
    write is such a failure. So is one without a MAC, unless the database shows its erasure:
    compare it with your records before you pass `--without-mac`.
    """
    listed = erasure_list(target, takes_without_mac=without_mac)
    modes = target.service.privacy(listed)
    names = await listed.names()
    again = Reapply(listed, modes, partial(signed_out, target), target.cause)
    with progress("reapplying", 2 * len(names)) as advance:
        outcome = await again.run(names, advance)
    answer = _reapplied(names, outcome, await unlisted(modes.values()))
    answer["unpublished"] = strange = await unpublished(target)
    warn_of(answer["unlisted"])
    if strange:
        # A backup from before the first erasure shows none, so nothing else tells a wrong list.
        why = f"the archive holds no checkpoint of {', '.join(strange)}, and the database has some"
        return Findings(answer, f"{why}: CLAIM_LEDGER_ARCHIVE_URL is the wrong place, or was lost")
    wrong = answer["unlisted"] or answer["failed"] or answer["objects_left"]
    if wrong:
        return Findings(answer, "the list and the database are not at one yet")
    return Fine(answer, f"{counted(len(names), 'erasure')} of the list hold in the database")


async def _sought(target: Target, email: str | None, text: str | None) -> Sought:
    """Return what to search for; raises UsageError unless one of the two was given."""
    if (email is None) == (text is None):
        raise click.UsageError("Give either an email address or --text.")
    if email is None:
        part = (text or "").strip()
        if not TEXT_CHARACTERS_MIN <= len(part) <= TEXT_CHARACTERS_MAX:
            bounds = f"{TEXT_CHARACTERS_MIN} to {TEXT_CHARACTERS_MAX}"
            raise invalid("text", f"expected {bounds} characters")
        return Sought(part)
    address = email.strip()
    if "@" not in address:
        raise invalid("email", "expected an email address; to search for a name, pass --text")
    return Sought(address, (await target.service.secrets.get()).lookup_email(address))


def _one(*given: tuple[Kind, str | None]) -> tuple[Kind, str]:
    """Return the one subject that was given; raises UsageError for none, or several."""
    chosen: list[tuple[Kind, str]] = [(kind, one) for kind, one in given if one is not None]
    if len(chosen) != 1:
        raise click.UsageError(f"Give one of {', '.join(f'--{kind}' for kind, _ in given)}.")
    return chosen[0]


def _check(kind: Kind, reason: str, *, with_claims: bool) -> None:
    """Refuse wrong usage before anything is looked up."""
    if with_claims and kind != "entity":
        raise click.UsageError("--with-claims requires --entity.")
    if not 0 < len(reason.strip()) <= REASON_CHARACTERS_MAX:
        raise invalid("reason", f"expected 1 to {REASON_CHARACTERS_MAX} characters")
    if "@" in reason:
        raise invalid("reason", "no email address: the reason stays in the log forever")


def _reapplied(names: list[str], outcome: ReapplyOutcome, unlisted_count: int) -> Fields:
    """Count what was shown already and what is absent; list what was done."""
    done = outcome.done
    return {
        "listed": len(names),
        "unlisted": unlisted_count,
        "shown": sum(item.erased is not None and not item.changed for item in done),
        "absent": sum(item.erased is None for item in done),
        "failed": len(outcome.faults),
        "keys_left": sum(fault.keys_left for fault in outcome.faults),
        "objects_left": sum(item.objects_left for item in done),
        "applied": [
            {
                "mode": item.entry.ledger,
                "subject": item.entry.subject,
                "asked_at": item.entry.at,
                "keys_destroyed": item.erased.keys,
                "objects": item.objects,
            }
            for item in done
            if item.erased is not None and item.changed
        ],
        "faults": [fault._asdict() for fault in outcome.faults],
    }
