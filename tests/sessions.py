"""Being signed in without a link and a mail."""

from service.app.bootstrap import Service
from service.people.sessions import Session

BROWSER = "b" * 43
"""The token of a browser that asks for links."""


async def session_of(service: Service, email: str, *, by_passkey: bool = True) -> Session:
    """Begin a session of the person with this address, as if by a passkey that was just used."""
    address_hash = bytes.fromhex((await service.secrets.get()).lookup_email(email))
    async with service.accounts.database.writes.transaction() as connection:
        return await service.sessions.begin(connection, email, address_hash, by_passkey=by_passkey)
