"""Who is calling, read for all requests that come at once."""

import asyncio

from tests.world import STAFF


async def test_requests_at_once_are_each_answered_with_their_own_key(world):
    """Rows come back in the order asked, with gaps where a partner or a key does not exist."""
    partners = [await world.partner() for _ in range(3)]
    asked = [
        (partner.partner_id, partner.keys[mode].split(".")[1], mode)
        for partner in partners
        for mode in ("live", "test")
    ]
    rows = await asyncio.gather(
        *(world.service.partner_list.authenticate(*ask[:2]) for ask in asked),
        world.service.partner_list.authenticate("ptn_unknown", asked[0][1]),
        world.service.partner_list.authenticate(asked[0][0], asked[2][1]),
    )
    *known, no_partner, anothers_key = rows
    names = [f"{row['name']} {row['mode']}" for row in known]

    assert [mode for *_, mode in asked] == [row["mode"] for row in known]
    assert len(set(names)) == len(asked)
    assert no_partner is None
    assert anothers_key["status"] == "approved"
    assert anothers_key["secret_hash"] is None


async def test_many_requests_of_one_key_share_reads(world, monkeypatch):
    """While a read is under way the others wait, and then go together."""
    partner = await world.partner()
    key_id = partner.keys["live"].split(".")[1]
    database = world.service.accounts.database
    fetch, sizes = database.reads.fetch, []

    async def counted(sql, *args):
        sizes.append(len(args[0]))
        return await fetch(sql, *args)

    monkeypatch.setattr(database.reads, "fetch", counted)
    reads = [world.service.partner_list.authenticate(partner.partner_id, key_id) for _ in range(64)]
    rows = await asyncio.gather(*reads)

    assert {"live"} == {row["mode"] for row in rows}
    assert sum(sizes) == 64
    assert len(sizes) <= 2


async def test_a_key_is_revoked_from_the_next_request_on(world):
    """Reads that were asked for before the revocation do not answer for a later request."""
    partner = await world.partner()
    key_id = partner.keys["live"].split(".")[1]
    authenticate = world.service.partner_list.authenticate
    earlier = [asyncio.create_task(authenticate(partner.partner_id, key_id)) for _ in range(8)]
    await world.service.partners.revoke_key(partner.partner_id, key_id, STAFF)
    row = await authenticate(partner.partner_id, key_id)
    await asyncio.gather(*earlier)

    assert row["revoked_at"] is not None
