"""What an erasure removes of a person's sign-ins."""

import asyncio
from typing import Any

import pytest

from service.app.web import web_app
from service.facts.people import person_id
from service.ledger.database import LedgerUnavailable
from service.people.sessions import NOWHERE
from service.people.sign_in import PURPOSE
from service.request_log.retention import Retention
from tests.patience import eventually
from tests.sessions import BROWSER, session_of
from tests.world import STAFF

ROWS = (
    "select (select count(*) from accounts.sessions), (select count(*) from accounts.sign_in_links)"
)


async def test_an_address_is_forgotten_with_its_sessions_and_links(world):
    """They are removed with the address's keyed hash; other people's stay."""
    service = world.service
    entity_id = await service.modes["live"].entities.add("B", "gone@example.com", None, STAFF)
    for email in ("gone@example.com", "stays@example.com"):
        await service.sign_in.ask(email, "/account", BROWSER)
        await session_of(service, email)
    address = await service.modes["live"].connection_list.address_hash(entity_id)
    assert address == bytes.fromhex((await service.secrets.get()).lookup_email("gone@example.com"))
    await service.sessions.forget(address)
    async with service.accounts.database.writes.connection() as connection:
        assert tuple(await connection.fetchrow(ROWS)) == (1, 1)


OPEN = (
    "select (select count(*) from accounts.sessions where ended_at is null),"
    " (select count(*) from accounts.sign_in_links)"
)
WAITING = (
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)


@pytest.mark.parametrize(
    ("by", "end"), [("a link", "forget"), ("a passkey", "forget"), ("a passkey", "end_others")]
)
async def test_sessions_end_while_their_person_signs_in(world, owner, monkeypatch, by, end):
    """What ends them waits for the session that is about to begin, and ends it too."""
    service, email = world.service, "gone@example.com"
    secrets = await service.secrets.get()
    if by == "a link":
        await service.sign_in.ask(email, "/account", BROWSER)
        ((link_id,),) = owner.execute("select link_id from accounts.sign_in_links").fetchall()
        token = secrets.link_token(PURPOSE, link_id)
        signing_in = service.sign_in.redeem(token, None, BROWSER)
    else:
        session = await session_of(service, email)
        signing_in = service.sessions.renew(session.token, session.person, NOWHERE)
    used, go_on = asyncio.Event(), asyncio.Event()
    begin = type(service.sessions).begin

    async def begin_late(*given, **named):
        used.set()
        await go_on.wait()
        return await begin(*given, **named)

    monkeypatch.setattr(type(service.sessions), "begin", begin_late)
    beginning = asyncio.create_task(signing_in)
    await used.wait()
    address_hash = secrets.lookup_email(email)
    whose = bytes.fromhex(address_hash) if end == "forget" else person_id(address_hash)
    ending = asyncio.create_task(getattr(service.sessions, end)(whose))
    await eventually(lambda: owner.execute(WAITING).fetchall())
    go_on.set()
    await asyncio.gather(beginning, ending)
    assert beginning.result() is not None
    assert owner.execute(OPEN).fetchall() == [(0, 0)]


async def test_what_is_over_goes_without_anybody_signing_in(world, owner, monkeypatch):
    """Sessions and links a day after their end, sign-outs with the marks; a failure stops none."""
    monkeypatch.setattr("service.people.sessions.ROWS_MAX", 2)
    service = world.service
    for name in "abcde":
        await service.sign_in.ask(f"{name}@example.com", "/account", BROWSER)
        session = await session_of(service, f"{name}@example.com")
        if name != "e":
            await service.sessions.end_others(session.person.person_id)
    owner.execute(
        "update accounts.sessions set expires_at = now() - interval '25 hours'"
        " where ended_at is not null;"
        "update accounts.sign_in_links set expires_at = now() - interval '25 hours'"
        " where link_id <> (select max(link_id) from accounts.sign_in_links);"
        "update accounts.sign_in_links set expires_at = now() - interval '23 hours'"
        " where expires_at > now();"
        "update accounts.sign_outs set at = now() - interval '181 days'"
        " where person_id <> (select max(person_id) from accounts.sign_outs)"
    )

    async def fails() -> int:
        raise LedgerUnavailable("away")

    made = list[tuple[Any, ...]]()
    monkeypatch.setattr("service.app.web.Retention", lambda *parts: made.append(parts) or kept)
    kept = Retention((), service.clock)
    web_app(service, world.metrics, None, late_pages=True)
    ((_, _, *others),) = made
    await Retention((), service.clock, fails, *others).run_once()
    outs = owner.execute("select count(*) from accounts.sign_outs").fetchone()
    assert (owner.execute(ROWS).fetchone(), outs) == ((1, 1), (1,))
    assert await service.sessions.delete_expired() == 0
