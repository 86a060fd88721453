"""Sign-in links, tested through the commands behind the page."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from service.core.errors import Refusal
from service.pages.words import TEXTS
from service.people.sign_in import ASKED_MAX, PURPOSE
from tests.sessions import BROWSER, session_of

EMAIL = "person@example.com"
IDS = "select link_id from accounts.sign_in_links order by asked_at"


async def links(world):
    """Return the tokens of all stored links."""
    async with world.service.accounts.transaction() as transaction:
        rows = await transaction.connection.fetch(IDS)
    secrets = await world.service.secrets.get()
    return [secrets.link_token(PURPOSE, row["link_id"]) for row in rows]


async def test_an_address_gets_at_most_five_links(world):
    """Of forty concurrent requests five get links; the rest is dropped, whatever their tags."""
    await asyncio.gather(*(world.service.sign_in.ask(EMAIL, "/", BROWSER) for _ in range(40)))
    for same in ("Person@Example.com", "person+1@example.com", "person+2@example.com"):
        await world.service.sign_in.ask(same, "/", BROWSER)
    assert len(await links(world)) == ASKED_MAX
    await world.service.sign_in.ask("other@example.com", "/", BROWSER)
    assert len(await links(world)) == ASKED_MAX + 1


async def test_an_address_can_ask_again_later(world, owner):
    """Fifteen minutes later by the database's clock, and not when the first link expires."""
    for _ in range(ASKED_MAX + 1):
        await world.service.sign_in.ask(EMAIL, "/", BROWSER)
    for passed, asked in (("10 min", ASKED_MAX), ("5 min", ASKED_MAX + 1)):
        ago = f"asked_at - interval '{passed}'"
        owner.execute(f"update accounts.sign_in_links set asked_at = {ago}")  # noqa: S608 - ours
        await world.service.sign_in.ask(EMAIL, "/", BROWSER)
        assert len(await links(world)) == asked


async def test_a_link_lives_for_ten_minutes(world):
    """Not longer, and the pages say so."""
    await world.service.sign_in.ask(EMAIL, "/", BROWSER)
    async with world.service.accounts.transaction() as transaction:
        life = await transaction.connection.fetchval(
            "select expires_at - asked_at from accounts.sign_in_links"
        )
    assert life == timedelta(minutes=10)
    for name in ("sign_in.sent", "refused.sign_in_link_expired.advice"):
        assert "10 minutes" in TEXTS[name]


async def test_a_link_is_redeemed_once(world):
    """Of thirty concurrent attempts one is signed in."""
    await world.service.sign_in.ask(EMAIL, "/account", BROWSER)
    (token,) = await links(world)

    async def redeem():
        try:
            session, path = await world.service.sign_in.redeem(token, None, BROWSER)
        except Refusal as refusal:
            return refusal.code
        return session.person.email, path

    outcomes = await asyncio.gather(*(redeem() for _ in range(30)))
    assert outcomes.count((EMAIL, "/account")) == 1
    assert outcomes.count("sign_in_link_used") == 29


async def test_an_expired_link_is_refused(world, owner):
    """By the database's clock, whatever ours shows."""
    await world.service.sign_in.ask(EMAIL, "/", BROWSER)
    (token,) = await links(world)
    owner.execute("update accounts.sign_in_links set expires_at = now()")
    sign_in = world.service.sign_in
    for act in (sign_in.look(token), sign_in.redeem(token, None, BROWSER)):
        try:
            await act
            code = "none"
        except Refusal as refusal:
            code = refusal.code
        assert code == "sign_in_link_expired"


async def test_nothing_readable_is_stored(world):
    """The row has neither the address nor the destination, which may contain a token."""
    await world.service.sign_in.ask(EMAIL, "/connect/secret-token", BROWSER)
    (token,) = await links(world)
    async with world.service.accounts.transaction() as transaction:
        row = await transaction.connection.fetchrow("select * from accounts.sign_in_links")
    stored = b" ".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
    for secret in (EMAIL, "secret-token", token):
        assert secret.encode() not in stored


async def test_a_link_whose_session_could_not_begin_can_be_used_again(world, owner):
    """It is used up and the earlier session ended with the new session's beginning, or neither."""
    service = world.service
    earlier = await session_of(service, EMAIL)
    await service.sign_in.ask(EMAIL, "/account", BROWSER)
    (token,) = await links(world)
    owner.execute("alter table accounts.sessions add constraint never check (false) not valid")
    with pytest.raises(asyncpg.CheckViolationError):
        await service.sign_in.redeem(token, earlier.token, BROWSER)
    assert await service.sessions.read(earlier.token) == earlier.person
    owner.execute("alter table accounts.sessions drop constraint never")
    session, path = await service.sign_in.redeem(token, earlier.token, BROWSER)
    assert (session.person.email, path) == (EMAIL, "/account")
    assert await service.sessions.read(earlier.token) is None
