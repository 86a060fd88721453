"""Sessions hold while they are used and were not ended, also where nothing can be written."""

from service.ledger.database import LedgerUnavailable
from service.people.sessions import Sessions
from tests.sessions import moved_in_time, session_of

EMAIL = "person@example.com"


async def test_a_session_that_was_not_used_for_too_long_is_not_listed(service):
    """As it is none any more."""
    person = (await session_of(service, EMAIL)).person
    await moved_in_time(service, "sessions", "seen_at", 59)
    assert len(await service.sessions.of(person.person_id)) == 1
    await moved_in_time(service, "sessions", "seen_at", 61)
    assert await service.sessions.of(person.person_id) == []


async def test_a_session_that_had_ended_is_not_ended_again(service):
    """The team is told how many it has ended."""
    session, other = [await session_of(service, EMAIL) for _ in range(2)]
    await service.sessions.end(other.token)
    async with service.accounts.transaction() as transaction:
        person_id = session.person.person_id
        assert await service.sessions.end_in(transaction.connection, person_id) == 1


async def test_signed_in_people_read_on_where_nothing_can_be_written(service, monkeypatch):
    """That a session was used is not noted then."""
    session = await session_of(service, EMAIL)
    await moved_in_time(service, "sessions", "seen_at", 59)

    async def fail(*_args):
        raise LedgerUnavailable

    monkeypatch.setattr(Sessions, "_seen", fail)
    assert await service.sessions.read(session.token) == session.person
