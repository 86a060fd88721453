"""What an erasure removes of a person's sign-ins."""

from tests.world import STAFF

ROWS = (
    "select (select count(*) from accounts.sessions), (select count(*) from accounts.sign_in_links)"
)


async def test_an_address_is_forgotten_with_its_sessions_and_links(world):
    """They are removed with the address's keyed hash; other people's stay."""
    service = world.service
    entity_id = await service.modes["live"].entities.add("B", "gone@example.com", None, STAFF)
    for email in ("gone@example.com", "stays@example.com"):
        await service.sign_in.ask(email, "/account")
        hashed = bytes.fromhex((await service.secrets.get()).lookup_email(email))
        await service.sessions.begin(email, hashed)
    address = await service.modes["live"].connection_list.address_hash(entity_id)
    assert address == bytes.fromhex((await service.secrets.get()).lookup_email("gone@example.com"))
    await service.sessions.forget(address)
    async with service.accounts.database.connection() as connection:
        assert tuple(await connection.fetchrow(ROWS)) == (1, 1)
