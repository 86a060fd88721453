"""Whose mail is sent next, and that what nobody is told takes no place in the line."""

import json

import pytest

from service.facts.endpoints import endpoints_stream
from service.facts.partners import partner_stream
from service.ledger.sql import queries
from service.mail.outbox import ENDS_MAX
from tests.mail.noted import mails, note_account_mail
from tests.plans import nodes_of
from tests.world import STAFF

WAITING = """
insert into accounts.mail_outbox (message_id, stream_id, version, noted_at, next_attempt_at)
select 'account-' || {stream} || '-' || n, {stream}, n, at, at
from
    generate_series(1, {count}) as n,
    lateral (select now() - interval '1 hour' + n * interval '1 millisecond') as moments (at)
"""
"""Notices about events that are not there: obsolete, once it is their turn."""
ONE_STREAM = "'00000000-0000-0000-0000-000000000001'::uuid"


async def test_streams_take_turns(world, owner):
    """What waits of one, however much, holds up no other's for long, before it or after it."""
    early = await world.partner()
    await world.service.partners.add_member(early.partner_id, "early@example.com", STAFF)
    await note_account_mail(world)
    owner.execute("update accounts.mail_outbox set next_attempt_at = now() - interval '30 minutes'")
    owner.execute(WAITING.format(stream=ONE_STREAM, count=ENDS_MAX))
    late = await world.partner()
    await world.service.partners.add_member(late.partner_id, "late@example.com", STAFF)
    outbox = await note_account_mail(world)
    for _ in range(30):  # three streams in turn, of which two have some other notices first
        assert await outbox.step() == 1
    told = {str(one["To"]) for one in mails(world)}
    assert told >= {"early@example.com", "late@example.com"}


async def test_the_line_is_emptied_by_a_lone_stream_too(world, owner):
    """Oldest first, as nobody else waits for a turn."""
    owner.execute(WAITING.format(stream=ONE_STREAM, count=5))
    outbox, order = await note_account_mail(world), []
    waiting = "select version from accounts.mail_outbox where state = 'waiting' order by version"
    while await outbox.step():
        order.append([version for (version,) in owner.execute(waiting).fetchall()])
    assert order == [[2, 3, 4, 5], [3, 4, 5], [4, 5], [5], []]


@pytest.mark.parametrize("counted", [False, True], ids=["no statistics", "statistics"])
@pytest.mark.parametrize("stream", [ONE_STREAM, "gen_random_uuid()"], ids=["one", "many"])
async def test_a_turn_costs_the_same_however_much_waits(world, owner, stream, counted):
    """By a plan that was made when nothing waited, as by one for what does."""
    sql = queries("service.mail").outbox_take.on("accounts")
    async with world.service.accounts.database.background.connection() as connection:
        await connection.execute("set plan_cache_mode = force_generic_plan")
        await connection.execute(f"prepare turn (timestamptz, uuid[], int, int) as {sql}")
        turn = f"execute turn (now(), '{{}}', {ENDS_MAX}, 20)"
        await connection.fetch(turn)
        owner.execute(WAITING.format(stream=stream, count=4 * ENDS_MAX))
        if counted:
            owner.execute("analyze accounts.mail_outbox")
        explained = await connection.fetch(f"explain (analyze, format json) {turn}")
    for node in nodes_of(json.loads(explained[0][0])[0]["Plan"]):
        assert node["Actual Rows"] * node["Actual Loops"] <= 2 * ENDS_MAX, node
        assert node.get("Rows Removed by Filter", 0) == 0, node


async def test_what_nobody_is_told_is_not_queued(world, owner):
    """Other settings than the return URL, and anything of a partner that is not approved."""
    partners = world.service.partners
    words = {"company": "Books", "contact_name": "Somebody", "use": "Use", "cause": STAFF}
    partner_id = await partners.apply(**words, email="owner@example.com")

    async def change() -> None:
        """Change all settings, the return URL once."""
        for wanted in (True, False):
            await partners.change_settings(partner_id, STAFF, return_link=wanted)
            await partners.change_settings(partner_id, STAFF, suppress_email=wanted)
        await partners.change_settings(partner_id, STAFF, return_url="https://example.com/a")
        await partners.change_settings(partner_id, STAFF, return_link=True)
        await partners.change_settings(partner_id, STAFF, return_link=False)

    queued = "select version from accounts.mail_outbox order by version"
    await change()
    await partners.add_member(partner_id, "colleague@example.com", STAFF)
    await note_account_mail(world)
    assert owner.execute(queued).fetchall() == []
    await partners.change_settings(partner_id, STAFF, return_url="")
    await partners.approve(partner_id, STAFF)
    await change()
    await note_account_mail(world)
    versions = [version for (version,) in owner.execute(queued).fetchall()]
    past = await world.service.accounts.read(partner_stream(partner_id))
    told = [type(one.event).__name__ for one in past if one.version in versions]
    assert told == ["PartnerApproved", "PartnerSettingsChanged"]
    await partners.revoke(partner_id, STAFF)
    await partners.add_member(partner_id, "another@example.com", STAFF)
    await note_account_mail(world)
    assert owner.execute(queued).fetchall() == [(version,) for version in versions]


async def test_ends_of_what_is_for_tests_are_not_queued(world, owner):
    """Test keys that end, lent ones among them, and test mode's endpoints that answer 410."""
    partner = await world.partner()
    partners, endpoints = world.service.partners, world.service.endpoints
    await note_account_mail(world)
    owner.execute("delete from accounts.mail_outbox")
    for _ in range(2):
        await partners.lend_key(partner.partner_id, STAFF)
    key = await partners.issue_key(partner.partner_id, "test", STAFF)
    await partners.revoke_key(partner.partner_id, key.key_id, STAFF)
    for mode in ("test", "live"):
        name = f"whe_{mode}"
        await endpoints.add(partner.partner_id, name, mode, "https://example.com/", [], STAFF)
        await endpoints.disable(partner.partner_id, name, "gone", STAFF)
    await note_account_mail(world)
    queued = owner.execute("select stream_id, version from accounts.mail_outbox").fetchall()
    assert queued == [(endpoints_stream(partner.partner_id), 4)]


async def test_a_row_about_a_test_key_is_obsolete(world, owner):
    """An earlier release queued them."""
    partner = await world.partner()
    stream = partner_stream(partner.partner_id)
    key = await world.service.partners.issue_key(partner.partner_id, "test", STAFF)
    await world.service.partners.revoke_key(partner.partner_id, key.key_id, STAFF)
    ends = (await world.service.partners.look(partner.partner_id)).version
    outbox = await note_account_mail(world)
    owner.execute("delete from accounts.mail_outbox")
    for version in (ends - 1, ends):
        owner.execute(
            "insert into accounts.mail_outbox"
            " (message_id, stream_id, version, noted_at, next_attempt_at)"
            " values (%s, %s, %s, now(), now() - interval '1 minute')",
            (f"account-{stream}-{version}", stream, version),
        )
    while await outbox.step():
        pass
    states = owner.execute("select state from accounts.mail_outbox").fetchall()
    assert (states, mails(world)) == ([("obsolete",)] * 2, [])
