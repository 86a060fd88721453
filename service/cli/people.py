"""`claim-ledger people`: sessions and passkeys of anybody who signs in."""

import click

from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings, Fine
from service.core.counted import counted
from service.core.errors import invalid
from service.http.scalars import email_fault
from service.people.passkeys import Ended
from service.people.sessions import Person


@team_command
@click.argument("email")
async def show(target: Target, email: str) -> Fields:
    """Show a person's passkeys and where they are signed in."""
    return await _shown(target, await _person_id(target, email))


@team_command
@click.argument("email")
async def sign_out(target: Target, email: str) -> Fields:
    """End every session of a person.

    Exits with 1 if nobody was signed in by that address lately, and it has no passkey either.
    """
    person_id = await _person_id(target, email)
    ended = await target.service.passkeys.sign_out(person_id, target.cause)
    left = await _shown(target, person_id)
    answer = {"person_id": person_id, "sessions_ended": ended.sessions} | left
    return _told(answer, ended, counted(ended.sessions, "session") + " ended")


@team_command
@click.argument("email")
async def recover(target: Target, email: str) -> Fields:
    """Remove the passkeys of a person who lost them, and end their sessions.

    They sign in by email then, and add another: make sure first that it is they who ask. Nobody
    recovers themselves. Exits with 1 as `sign-out` does.
    """
    person_id = await _person_id(target, email)
    helper_id = await _person_id(target, target.person) if target.person else ""
    ended = await target.service.passkeys.recover(person_id, helper_id, target.cause)
    gone = {"passkeys_removed": ended.passkeys, "sessions_ended": ended.sessions}
    answer = {"person_id": person_id} | gone | await _shown(target, person_id)
    removed = f"{counted(ended.passkeys, 'passkey')} removed"
    return _told(answer, ended, f"{removed}, {counted(ended.sessions, 'session')} ended")


def _told(answer: Fields, ended: Ended, done: str) -> Fields:
    """Return an answer with its verdict: an address that leads to nobody may be mistyped."""
    if ended.is_known:
        return Fine(answer, done)
    return Findings(
        answer,
        f"{done}: nobody was signed in by this address lately, and it never had a passkey. "
        "Is it the right one?",
    )


async def _person_id(target: Target, email: str) -> str:
    fault = email_fault(email)
    if fault is not None:
        raise invalid("email", fault)
    address_hash = (await target.service.secrets.get()).lookup_email(email)
    return Person(email, address_hash, "").person_id


async def _shown(target: Target, person_id: str) -> Fields:
    passkeys = await target.service.passkeys.of(person_id)
    sessions = await target.service.sessions.of(person_id)
    return {
        "person_id": person_id,
        "passkeys": [{"passkey_id": one.passkey_id, "added_at": one.added_at} for one in passkeys],
        "sessions": [
            {
                "session_id": one.session_id,
                "started_at": one.started_at,
                "seen_at": one.seen_at,
                "by_passkey": one.kept.by_passkey,
                "network": one.kept.network,
                "browser": one.kept.browser,
            }
            for one in sessions
        ],
    }
