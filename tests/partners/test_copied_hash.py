"""What rows say of keys and partners counts for nothing: their events decide."""

import pytest

from service.facts.partners import ApiKeyIssued, partner_stream
from service.ledger.binding import Boundary
from service.ledger.writing import Append
from service.partners.keys import hash_secret, new_secret, parse_authorization
from tests.patience import eventually
from tests.tables import every_row
from tests.world import STAFF, claim_body


def parts(partner, mode="live"):
    """Return a partner's token taken apart."""
    return parse_authorization(f"Bearer {partner.keys[mode]}")


def stored(world, token):
    """Return the row of a key, to be changed as whoever can write the table does."""
    tables = world.service.accounts.database.tables
    (row,) = tables.where("api_keys", key_id=token.key_id)
    return row


async def status(world, token):
    """Return what a write under a token is answered."""
    headers = {"Authorization": f"Bearer {token}"}
    body = claim_body("ent_none")
    answer = await world.client.post("/v1/claims", headers=headers, json=body)
    return answer.status_code


@pytest.fixture
def older(in_memory, monkeypatch):
    """Return a service whose secrets are older than its event key."""

    async def make():
        secrets = await in_memory.service.secrets.get()
        events = secrets.events._replace(since_start=False)
        monkeypatch.setattr(in_memory.service.secrets, "_loaded", secrets._replace(events=events))
        monkeypatch.setattr(in_memory.service.accounts, "_binding", None)
        return secrets.pepper

    return make


async def test_a_row_revives_nothing(in_memory):
    """Neither a key that was revoked, nor a partner, nor one that was never approved."""
    service = in_memory.service
    key_gone, partner_gone = await in_memory.partner(), await in_memory.partner()
    tokens = [parts(key_gone), parts(partner_gone), parts(partner_gone, "test")]
    assert [await status(in_memory, token) for token in tokens] == [404] * 3
    await service.partners.revoke_key(tokens[0].partner_id, tokens[0].key_id, STAFF)
    await service.partners.revoke(tokens[1].partner_id, STAFF)
    for token in tokens:
        stored(in_memory, token).update(revoked_at=None, revoked_later=False)
    waiting = await service.partners.add("Partner", "p@example.com", STAFF)
    for row in service.accounts.database.tables["partners"]:
        row["status"] = "approved"
    assert [await status(in_memory, token) for token in tokens] == [401] * 3
    assert not await service.partner_list.is_approved(waiting)
    assert await status(in_memory, parts(key_gone, "test")) == 404


async def test_a_copied_hash_does_not_authenticate(in_memory):
    """Neither for another partner, nor another key or mode of one's own, whatever its version."""
    one, other = await in_memory.partner(), await in_memory.partner()
    pepper = (await in_memory.service.secrets.get()).pepper
    mine, test = parts(one), parts(one, "test")
    with every_row() as row:
        for name, target in (("partner", parts(other)), ("mode", test)):
            for version in (1, 2):
                with row(name, version):
                    copied = hash_secret(pepper, mine, version)
                    stored(in_memory, target).update(secret_hash=copied, hash_version=version)
                    assert await status(in_memory, target._replace(secret=mine.secret)) == 401
        with row("its own"):
            assert await status(in_memory, mine) == 404


async def issue_as_before(world, partner, pepper):
    """Issue a key as the release before did; return its token."""
    accounts, token = world.service.accounts, parts(partner)
    token = token._replace(key_id=f"{token.key_id}_of_before", secret=new_secret())
    known = await world.service.partners.look(token.partner_id)
    secret_hash = hash_secret(pepper, token, 1)
    issued = ApiKeyIssued(token.partner_id, token.key_id, token.mode, secret_hash)
    stream = partner_stream(token.partner_id)
    async with accounts.transaction() as transaction:
        await transaction.append(Append(stream, known.version, [issued], STAFF))
    return token


async def test_a_key_issued_before_is_bound_when_it_is_used(in_memory, older, monkeypatch):
    """Once the log says that its events are bound; its secret goes on working, and no other."""
    partner, pepper = await in_memory.partner(), await older()
    token = await issue_as_before(in_memory, partner, pepper)
    accounts = in_memory.service.accounts
    assert await status(in_memory, token) == 404
    assert stored(in_memory, token)["hash_version"] == 1
    assert await status(in_memory, token._replace(mode="test")) == 401
    bound = (await accounts.binding())._replace(boundaries=[Boundary(1)])
    monkeypatch.setattr(accounts, "_binding", bound)
    assert await status(in_memory, token._replace(secret="x")) == 401
    assert await status(in_memory, token) == 404
    await eventually(lambda: stored(in_memory, token)["hash_version"] == 2)
    assert stored(in_memory, token)["secret_hash"] == hash_secret(pepper, token)
    assert await status(in_memory, token) == 404
    assert await status(in_memory, token._replace(secret="x")) == 401
    wanted = {"topic": "ApiKeyRebound", "originator_id": partner_stream(token.partner_id)}
    (rebound,) = accounts.database.tables.where("events", **wanted)
    assert f'"actor":"partner:{token.partner_id}/{token.key_id}"'.encode() in rebound["state"]
