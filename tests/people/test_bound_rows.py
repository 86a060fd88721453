"""Sessions and sign-in links against somebody who can write to their tables and has no key."""

from contextlib import contextmanager

import pytest

from service.core.errors import Refusal
from service.ledger.service_keys import token_hash
from service.people import sessions, sign_in
from service.people.sign_in import PURPOSE
from tests.pages.visitor import Visitor
from tests.sessions import BROWSER, session_of
from tests.tables import every_row
from tests.world import STAFF

VICTIM, ATTACKER = "team@example.com", "attacker@example.com"
COLUMNS = (
    "select column_name::text from information_schema.columns"
    " where table_schema = 'accounts' and table_name = %s"
)
MORE = {
    "token_hash": "sha256(token_hash)",
    "session_id": "session_id || 'x'",
    "link_id": "link_id || 'x'",
    "address_hash": "sha256(address_hash)",
    "started_at": "started_at + interval '1 microsecond'",
    "asked_at": "asked_at - interval '1 microsecond'",
    "expires_at": "expires_at + interval '1 year'",
    "person_id": "person_id || 'x'",
    "seen_at": "now() + interval '1 minute'",
    "recipient_hash": "sha256(recipient_hash)",
}
"""How each column of a row is altered."""
FREE = {
    "sessions": {"wrapped", "master_key_id", "ended_at"},
    "sign_in_links": {
        *("wrapped", "master_key_id", "used_at"),
        *("mail_state", "mail_attempts", "mail_next_at"),
    },
}
"""Columns that no row is bound to: the box, the id of its key, its end, what became of its mail."""


@contextmanager
def changed(owner, table, column, value=None):
    """Alter a column of a table's only row within the block."""
    ((before,),) = owner.execute(f"select {column} from accounts.{table}").fetchall()  # noqa: S608 - ours
    new = MORE[column] if value is None else "%s"
    owner.execute(
        f"update accounts.{table} set {column} = {new}",  # noqa: S608 - ours
        [] if value is None else [value],
    )
    try:
        yield
    finally:
        owner.execute(f"update accounts.{table} set {column} = %s", [before])  # noqa: S608 - ours


@pytest.mark.parametrize(
    ("table", "bound"), [("sessions", sessions.BOUND), ("sign_in_links", sign_in.BOUND)]
)
def test_a_row_is_bound_to_every_column(owner, table, bound):
    """A column that is added later is bound as well, or named here with its reason."""
    columns = {name for (name,) in owner.execute(COLUMNS, [table])}
    assert columns - FREE[table] == set(bound)


async def test_an_altered_session_is_none(world, owner):
    """Whichever column is altered: nobody is prolonged, or becomes another person."""
    service = world.service
    session = await session_of(service, ATTACKER)
    with every_row() as row:
        for column in sessions.BOUND:
            with row(column), changed(owner, "sessions", column):
                assert await service.sessions.read(session.token) is None
    assert await service.sessions.read(session.token) == session.person


async def test_a_session_with_another_token_is_none(world, owner):
    """Somebody else's session is worth nothing under a token of one's own, moved or copied."""
    service = world.service
    theirs = await session_of(service, VICTIM)
    mine = token_hash("mine")
    copied = (
        "insert into accounts.sessions select %s, session_id || 'x', address_hash, wrapped,"
        " master_key_id, started_at, expires_at, ended_at, person_id, seen_at"
        " from accounts.sessions"
    )
    owner.execute(copied, [mine])
    assert await service.sessions.read("mine") is None
    owner.execute("delete from accounts.sessions where token_hash = %s", [mine])
    owner.execute("update accounts.sessions set token_hash = %s", [mine])
    assert await service.sessions.read("mine") is None
    owner.execute("update accounts.sessions set token_hash = %s", [token_hash(theirs.token)])
    assert await service.sessions.read(theirs.token) == theirs.person


async def test_a_session_takes_nobody_elses_address(world, owner):
    """The address of another session does not open in one's own row, nor its keyed hash pass."""
    service = world.service
    theirs, mine = await session_of(service, VICTIM), await session_of(service, ATTACKER)
    owner.execute(
        "update accounts.sessions as mine set address_hash = theirs.address_hash,"
        " wrapped = theirs.wrapped from accounts.sessions as theirs"
        " where mine.session_id = %s and theirs.session_id = %s",
        [mine.person.session_id, theirs.person.session_id],
    )
    assert await service.sessions.read(mine.token) is None
    assert await service.sessions.read(theirs.token) == theirs.person


async def test_an_ended_session_is_not_revived(world, owner):
    """Taking back its end brings nothing back, however it ended."""
    service = world.service
    signed_out, everywhere = [await session_of(service, VICTIM) for _ in range(2)]
    await service.sessions.end(signed_out.token)
    await service.sessions.end_others(everywhere.person.person_id)
    owner.execute("update accounts.sessions set ended_at = null")
    assert [await service.sessions.read(one.token) for one in (signed_out, everywhere)] == [
        None
    ] * 2


async def test_an_altered_link_signs_nobody_in(world, owner):
    """Not with a token of one's own, nor once it has expired or was used."""
    service = world.service
    await service.sign_in.ask(VICTIM, "/", BROWSER)
    ((link_id,),) = owner.execute("select link_id from accounts.sign_in_links").fetchall()
    token = (await service.secrets.get()).link_token(PURPOSE, link_id)
    with every_row() as row:
        for column in sign_in.BOUND:
            with (
                row(column),
                changed(owner, "sign_in_links", column),
                pytest.raises(Refusal, match="sign_in_link_invalid"),
            ):
                await service.sign_in.look(token)
    with (
        changed(owner, "sign_in_links", "token_hash", token_hash("mine")),
        pytest.raises(Refusal, match="sign_in_link_invalid"),
    ):
        await service.sign_in.look("mine")
    assert (await service.sign_in.redeem(token, None, BROWSER))[0].person.email == VICTIM
    owner.execute("update accounts.sign_in_links set used_at = null")
    with pytest.raises(Refusal, match="sign_in_link_invalid"):
        await service.sign_in.redeem(token, None, BROWSER)


async def test_a_row_makes_nobody_staff(world, owner):
    """Nor brings it back who was removed: who is staff follows from the events alone."""
    service = world.service
    lookup = (await service.secrets.get()).lookup_email
    await service.staff.add(VICTIM, STAFF)
    await service.staff.remove(VICTIM, STAFF)
    owner.execute("update accounts.staff set removed_at = null")
    owner.execute(
        "insert into accounts.staff select 'stf_x', gen_random_uuid(), %s, added_at"
        " from accounts.staff",
        [bytes.fromhex(lookup(ATTACKER))],
    )
    found = [await service.staff.by_address(lookup(one)) for one in (VICTIM, ATTACKER)]
    assert found == [None, None]


async def test_a_row_makes_nobody_a_member(world, owner):
    """Of a partner's team: its pages are refused, to who was removed as well."""
    service, partners = world.service, world.service.partners
    partner_id = await partners.add("Partner", "p@example.com", STAFF)
    await partners.approve(partner_id, STAFF)
    for member in (VICTIM, "other@example.com"):
        await partners.add_member(partner_id, member, STAFF)
    visitors = [Visitor(world) for _ in range(2)]
    for visitor, email in zip(visitors, (VICTIM, ATTACKER), strict=True):
        await visitor.sign_in(email)
    page = f"/console/{partner_id}"
    before = [(await visitor.get(page)).status_code for visitor in visitors]
    members = (await partners.look(partner_id)).members
    (victim,) = [one for one, known in members.items() if known.email == VICTIM]
    await partners.remove_member(partner_id, victim, STAFF)
    owner.execute("update accounts.members set removed_at = null")
    owner.execute(
        "insert into accounts.members select 'mem_x', partner_id, %s, added_at"
        " from accounts.members limit 1",
        [bytes.fromhex((await service.secrets.get()).lookup_email(ATTACKER))],
    )
    after = [(await visitor.get(page)).status_code for visitor in visitors]
    assert (before, after) == ([200, 403], [403, 403])


async def test_a_row_gives_nobody_a_business(world, owner):
    """Whose it is follows from the event that registered it: who may approve a partner for it."""
    live, lookup = world.service.modes["live"], (await world.service.secrets.get()).lookup_email
    own, others = [await live.entities.add(one, one, None, STAFF) for one in (ATTACKER, VICTIM)]
    owner.execute("update live.entities set email_hash = %s", [bytes.fromhex(lookup(ATTACKER))])
    readers = live.connection_list
    listed = await readers.entities_of(lookup(ATTACKER))
    asked = await readers.entities_asked(lookup(ATTACKER), "ptn_none")
    assert own != others
    assert [[row["entity_id"] for row in rows] for rows in (listed, asked)] == [[own], [own]]
