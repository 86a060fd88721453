"""Being signed in without a link and a mail."""

from service.app.bootstrap import Service
from service.people import sessions, sign_in
from service.people.sessions import Session

KEYS = {"sessions": "session_id", "sign_in_links": "link_id"}
BOUND_TO = {"sessions": sessions.bound_to, "sign_in_links": sign_in.bound_to}
BROWSER = "b" * 43
"""The token of a browser that asks for links."""


async def session_of(service: Service, email: str, *, by_passkey: bool = True) -> Session:
    """Begin a session of the person with this address, as if by a passkey that was just used."""
    address_hash = bytes.fromhex((await service.secrets.get()).lookup_email(email))
    async with service.accounts.database.writes.transaction() as connection:
        return await service.sessions.begin(connection, email, address_hash, by_passkey=by_passkey)


async def moved_in_time(service: Service, table: str, column: str, minutes: int) -> None:
    """Let a time in every row be so long ago, sealed as the service itself would have sealed it.

    Rows are bound to their columns: one that is merely updated is worth nothing.
    """
    ring, bound_to, key = service.accounts.master_keys, BOUND_TO[table], KEYS[table]
    async with service.accounts.database.writes.transaction() as connection:
        ago = f"now() - interval '{minutes} minutes'"
        rows = await connection.fetch(f"select *, {ago} as ago from accounts.{table}")  # noqa: S608 - ours
        for row in rows:
            if row["wrapped"]:
                kept = ring.unwrap(row["wrapped"], row["master_key_id"], bound_to(row))
                sealed = ring.wrap(kept, bound_to(dict(row) | {column: row["ago"]}))
                await connection.execute(
                    f"update accounts.{table} set {column} = $2, wrapped = $3 where {key} = $1",  # noqa: S608 - ours
                    *(row[key], row["ago"], sealed),
                )
