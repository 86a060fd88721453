"""The mails that tell of something that happened: no link in them is a credential."""

from collections.abc import Sequence
from datetime import datetime

from service.mail.letters import Letter, LinkLine, until
from service.mail.messages import AUTOMATIC, YOUR_BUSINESS, subject_name
from service.mail.names import shown

_NOT_YOU = (
    "If nobody on your team did this, revoke the key in the console and end any sessions you don't"
    " recognise."
)
_NOT_YOUR_TEAM = (
    "If nobody on your team did this, undo it in the console and end any sessions you don't"
    " recognise."
)
_CONSOLE = "Open the console"


def application_approved(*, partner_name: str, console: str) -> Letter:
    """Return what a partner is told when the team has approved it."""
    partner = shown(partner_name)
    return Letter(
        "Your partner account is approved",
        (
            "Hello,",
            (
                f"Our team has approved the partner account of {partner}. Your team can now"
                " issue keys and call the API, in test mode and in live mode."
            ),
            LinkLine(console, _CONSOLE),
            AUTOMATIC,
        ),
    )


def application_declined(*, partner_name: str, console: str) -> Letter:
    """Return what a partner is told when the team has declined it; the console says why."""
    partner = shown(partner_name)
    return Letter(
        "Your application was declined",
        (
            "Hello,",
            (
                f"Our team has declined the application of {partner} for a partner account."
                " The console shows the reason. You can apply again there, and tell us what has"
                " changed."
            ),
            LinkLine(console, _CONSOLE),
            AUTOMATIC,
        ),
    )


def invitation(*, partner_name: str, console: str) -> Letter:
    """Return what a person is told who was added to a partner's team."""
    partner = shown(partner_name)
    return Letter(
        f"You have been added to the team of {subject_name(partner_name, 'a partner')}",
        (
            "Hello,",
            (
                f"You have been added to the team of {partner}. Sign in with this email"
                " address to issue keys, watch requests and change settings together."
            ),
            LinkLine(console, _CONSOLE),
            (
                "If you did not expect this message, you can ignore it. Nothing happens unless you"
                " sign in."
            ),
            AUTOMATIC,
        ),
    )


def member_added(*, partner_name: str, email: str, console: str) -> Letter:
    """Return what a partner's team is told when somebody was added to it."""
    return Letter(
        "A colleague was added to your team",
        (
            "Hello,",
            (
                f"{shown(email)} was added to the team of {shown(partner_name)}, and can now issue"
                " keys, watch requests and change settings."
            ),
            LinkLine(console, "See your team"),
            _NOT_YOUR_TEAM,
            AUTOMATIC,
        ),
    )


def member_removed(*, partner_name: str, email: str, console: str) -> Letter:
    """Return what a partner's team is told when somebody is no longer in it."""
    return Letter(
        "A colleague was removed from your team",
        (
            "Hello,",
            f"{shown(email)} is no longer on the team of {shown(partner_name)}.",
            LinkLine(console, "See your team"),
            _NOT_YOUR_TEAM,
            AUTOMATIC,
        ),
    )


def membership_ended(*, partner_name: str, console: str) -> Letter:
    """Return what a person is told who is no longer in a partner's team."""
    partner = shown(partner_name)
    return Letter(
        f"You are no longer on the team of {subject_name(partner_name, 'a partner')}",
        (
            "Hello,",
            (
                f"You are no longer on the team of {partner}, and can no longer see its console."
                " The keys that you issued still work."
            ),
            LinkLine(console, _CONSOLE),
            (
                "If you did not expect this, ask your colleagues who removed you. If they do not"
                " know, tell our team."
            ),
            AUTOMATIC,
        ),
    )


def key_issued(*, partner_name: str, key_id: str, console: str) -> Letter:
    """Return what a partner is told when a live key was issued."""
    partner = shown(partner_name)
    return Letter(
        "A live API key was issued",
        (
            "Hello,",
            f"The live API key {key_id} was issued for {partner}.",
            LinkLine(console, "See your keys"),
            _NOT_YOU,
            AUTOMATIC,
        ),
    )


def key_rolled(
    *, partner_name: str, key_id: str, new_key_id: str, ends_at: datetime | None, console: str
) -> Letter:
    """Return what a partner is told when a live key was rolled; `ends_at` None: it has ended."""
    ends = f"works until {until(ends_at)}" if ends_at else "no longer works"
    partner = shown(partner_name)
    return Letter(
        "A live API key was rolled",
        (
            "Hello,",
            (
                f"The live API key {key_id} of {partner} was rolled: {new_key_id} takes its"
                f" place. The old key {ends}."
            ),
            LinkLine(console, "See your keys"),
            _NOT_YOU,
            AUTOMATIC,
        ),
    )


def key_revoked(*, partner_name: str, key_id: str, console: str) -> Letter:
    """Return what a partner is told when a live key was revoked."""
    partner = shown(partner_name)
    return Letter(
        "A live API key was revoked",
        (
            "Hello,",
            (
                f"The live API key {key_id} of {partner} was revoked. Calls made with it"
                " are refused from now on."
            ),
            LinkLine(console, "See your keys"),
            AUTOMATIC,
        ),
    )


def return_url_changed(*, partner_name: str, is_set: bool, console: str) -> Letter:
    """Return what a partner is told when the page changed that its customers return to."""
    which = (
        "was changed. Customers who connect to you can take their entity ID to the new page."
        if is_set
        else "was removed. Customers can no longer return to you with their entity ID."
    )
    return Letter(
        "The page that your customers return to was changed",
        (
            "Hello,",
            f"The return URL of {shown(partner_name)} {which}",
            LinkLine(console, "See your settings"),
            _NOT_YOUR_TEAM,
            AUTOMATIC,
        ),
    )


def partner_disconnected(
    *, partner_name: str, entity_id: str | None, console: str, by_customer: bool = True
) -> Letter:
    """Return what a partner is told when a business, or our team, has disconnected it.

    `entity_id` only where the partner has used it (contract, section 1).
    """
    which = f"the business {entity_id}" if entity_id else "a business"
    partner = shown(partner_name)
    if by_customer:
        subject = "A business has disconnected you"
        what = f"{which[0].upper()}{which[1:]} has disconnected {partner}."
    else:
        subject = "You were disconnected from a business"
        what = f"Our team has disconnected {partner} from {which}."
    return Letter(
        subject,
        (
            "Hello,",
            (
                f"{what} You can no longer create claims or upload documents for it. Existing"
                " claims stay and continue."
            ),
            LinkLine(console, _CONSOLE),
            AUTOMATIC,
        ),
    )


def stage_changed(*, company_name: str, stage: str, claim: str) -> Letter:
    """Return what a customer is told when a claim has moved; nothing of the debtor.

    `stage` is one of `service.facts.claims.STAGES`.
    """
    words, company = stage.replace("_", " "), shown(company_name) or YOUR_BUSINESS
    return Letter(
        f"A claim of {subject_name(company_name, YOUR_BUSINESS)} has moved to a new stage",
        (
            "Hello,",
            f"A claim of {company} has moved to a new stage: {words}.",
            LinkLine(claim, "See the claim"),
            "You asked for these messages. You can turn them off in your account.",
            AUTOMATIC,
        ),
    )


def passkey_added(*, link: str) -> Letter:
    """Return what a person is told when a passkey of theirs was added."""
    what = "A passkey was added to your account."
    return Letter("A passkey was added", _of_passkeys(what, link))


def passkey_removed(*, link: str) -> Letter:
    """Return what a person is told when one of their passkeys was removed."""
    what = "A passkey was removed from your account."
    return Letter("A passkey was removed", _of_passkeys(what, link))


def passkeys_reset(*, link: str) -> Letter:
    """Return what a person is told when the team has removed their passkeys."""
    what = "Our team has removed all passkeys from your account and ended your sessions."
    return Letter("Your passkeys were removed", _of_passkeys(what, link))


def _of_passkeys(what: str, link: str) -> Sequence[str | LinkLine]:
    return (
        "Hello,",
        what,
        LinkLine(link, "See your passkeys and sessions"),
        (
            "If you did not do this, or ask for it, somebody else may be reading your email. Sign"
            " in, end all other sessions, and tell our team, who can remove the passkeys."
        ),
        AUTOMATIC,
    )


def webhook_paused(*, partner_name: str, is_gone: bool, console: str) -> Letter:
    """Return what a partner is told whose webhook endpoint gets no events any more.

    `is_gone`: it answered 410 Gone; else it took nothing for three days, or refused too much.
    """
    why = (
        "answered 410 Gone"
        if is_gone
        else "has not taken an event for three days, or has refused more than a thousand events"
    )
    return Letter(
        "A webhook endpoint was paused",
        (
            "Hello,",
            (
                f"A webhook endpoint of {shown(partner_name)} {why}, so we have stopped sending to"
                " it. Its events are kept. Once it works again, resume it in the console:"
                " everything that is waiting follows, and nothing is missing."
            ),
            LinkLine(console, "Open the endpoint"),
            AUTOMATIC,
        ),
    )
