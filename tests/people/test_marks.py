"""When marks of browsers end: their person signs out everywhere, in whichever order."""

from contextlib import asynccontextmanager

from tests.sessions import session_of

EMAIL = "person@example.com"


async def marked(service):
    """Sign in; return the mark that the browser gets."""
    session = await session_of(service, EMAIL)
    return await service.marks.read(await service.marks.of(session), EMAIL)


@asynccontextmanager
async def begun(service):
    """Yield a connection whose transaction has begun, and looked at something."""
    async with service.accounts.transaction() as transaction:
        await transaction.now()
        yield transaction.connection


async def test_a_sign_out_ends_what_was_made_since_its_transaction_began(world):
    """As it ends the session; what is made afterwards holds."""
    service, earlier = world.service, await marked(world.service)
    async with begun(service) as connection:
        mark = await marked(service)
        assert await service.sessions.end_in(connection, mark.person_id) == 2
    assert not await service.marks.holds(earlier)
    assert not await service.marks.holds(mark)
    assert await service.marks.holds(await marked(service))


async def test_no_sign_out_takes_a_later_one_back(world):
    """The one whose transaction began first is written last."""
    service = world.service
    async with begun(service) as connection:
        mark = await marked(service)
        await service.sessions.end_others(mark.person_id)
        assert not await service.marks.holds(mark)
        await service.sessions.end_in(connection, mark.person_id)
    assert not await service.marks.holds(mark)
