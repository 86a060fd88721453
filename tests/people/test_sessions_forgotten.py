"""What an erasure removes of a person's sign-ins."""

import asyncio

import pytest

from service.facts.people import person_id
from service.people.sessions import NOWHERE
from service.people.sign_in import PURPOSE
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
