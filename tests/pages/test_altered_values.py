"""Rows of read models with values that no event has: shown as such, on pages that work."""

from collections.abc import Mapping

import pytest

from service.facts.claims import Document, DocumentFlagged, DocumentsAttached
from service.facts.partners import partner_stream
from service.ledger.writing import Append
from service.pages.words import SHOWN_MAX, stored
from tests.ledger.raw_events import RawEvent, write_raw
from tests.pages.customers import EMAIL, business, link_of, onboarding
from tests.pages.visitor import Visitor
from tests.tables import every_row
from tests.world import STAFF

PAGES = {
    "owner@example.com": (
        "/account",
        "/account/{entity}/{partner}",
        "/account/{entity}/{partner}/claims/{claim}",
    ),
    "dev@example.com": (
        "/console",
        "/console/{partner}",
        "/console/{partner}/keys",
        "/console/{partner}/webhooks",
        "/console/{partner}/webhooks/{endpoint}",
        "/console/{partner}/claims?mode=live",
        "/console/{partner}/claims/{claim}?mode=live",
        "/console/{partner}/links?mode=live",
        "/console/{partner}/links/{link}?mode=live",
        "/console/{partner}/onboardings?mode=live",
    ),
    "team@example.com": (
        "/backoffice",
        "/backoffice/people",
        "/backoffice/partners",
        "/backoffice/partners/{partner}",
        "/backoffice/entities/{entity}",
        "/backoffice/claims/{claim}",
        "/backoffice/timeline/{claim}",
    ),
}
ALTERED = {
    "accounts.partners.status": {"/console"},
    "accounts.webhook_endpoints.disabled": {"/console/{partner}/webhooks"},
    "accounts.webhook_endpoints.mode": {"/console/{partner}/webhooks"},
    "live.claim_list.stage": {"/account/{entity}/{partner}", "/console/{partner}/claims?mode=live"},
    "live.connect_links.state": {"/console/{partner}/links?mode=live"},
    "live.document_flags.reason": {"/backoffice"},
    "live.onboardings.state": {"/console/{partner}/onboardings?mode=live"},
}
"""Pages that show what a column has; others show what events say."""
STRANGE, SHOWN = "a\u202eb", "unknown value: a[U+202E]b"


@pytest.fixture
async def ids(world, owner) -> Mapping[str, str]:
    """Return the ids of what the pages show."""
    service, partner = world.service, await world.partner()
    live = service.modes["live"]
    entity = await live.entities.add("Bakery", "owner@example.com", None, STAFF)
    await partner.connect(entity)
    for one in (partner, await world.partner()):
        await service.partners.add_member(one.partner_id, "dev@example.com", STAFF)
    await service.staff.add("team@example.com", STAFF)
    claim = (await partner.claim(entity)).json()["claim_id"]
    stream = (await live.claim_list.by_id(claim))["stream_id"]
    pdf = Document("doc_1", "entities/x.pdf", "application/pdf", 1, 1, "AAAAAA==")
    found = [DocumentsAttached(claim, [pdf]), DocumentFlagged(claim, "doc_1", "malware", "Test")]
    async with live.ledger.transaction() as transaction:
        past = await transaction.read(stream)
        await transaction.append(Append(stream, len(past), found, STAFF))
    endpoint, url = service.endpoints.new_endpoint_id(), "https://hooks.example.com/"
    await service.endpoints.add(partner.partner_id, endpoint, "live", url, [], STAFF)
    await service.endpoints.disable(partner.partner_id, endpoint, "failing", STAFF)
    body = {"partner_user_id": "u", "company_name": "B", "user_email": "new@example.com"}
    await partner.call("POST", "/onboardings", json=body)
    (link,) = owner.execute("select link_id from live.connect_links").fetchone()
    values = {"partner": partner.partner_id, "entity": entity, "claim": claim}
    return values | {"endpoint": endpoint, "link": link}


async def test_a_value_that_nobody_knows_is_shown_and_no_page_fails(world, owner, ids):
    """Whoever can write to a read model can put anything there, one value at a time."""
    visitors = {email: await Visitor(world).sign_in(email) for email in PAGES}
    paths = [(visitors[email], path) for email, paths in PAGES.items() for path in paths]
    for visitor, path in paths:
        assert (await visitor.get(path.format(**ids))).status_code == 200, path
    with every_row() as row:
        for column, expected in ALTERED.items():
            table, _, name = column.rpartition(".")
            owner.execute(f"create table public.kept as table {table}")
            owner.execute(f"update {table} set {name} = %s", [STRANGE])  # noqa: S608 - ours
            seen = set()
            for visitor, path in paths:
                with row(column, path):
                    answer = await visitor.get(path.format(**ids))
                    assert answer.status_code < 500
                    if SHOWN in answer.text:
                        seen.add(path)
            with row(column):
                assert seen >= expected
            owner.execute(f"delete from {table}")  # noqa: S608 - ours
            owner.execute(f"insert into {table} table public.kept")
            owner.execute("drop table public.kept")


async def test_a_row_of_staff_without_its_event_is_left_out_and_told_of(world, owner, ids):
    """It gives nobody access. So it is where it names the stream of another, or was removed."""
    await world.service.staff.add("left@example.com", STAFF)
    visitor = await Visitor(world).sign_in("team@example.com")
    members, unexplained = await world.service.staff.list()
    assert ([one.email for one in members], unexplained) == (
        ["team@example.com", "left@example.com"],
        [],
    )
    await world.service.staff.remove("left@example.com", STAFF)
    owner.execute("update accounts.staff set removed_at = null")
    owner.execute(
        "insert into accounts.staff select 'stf_a', gen_random_uuid(), ''::bytea, now() union all"
        " select 'stf_b', stream_id, '\\x01'::bytea, now() from accounts.staff where staff_id = %s",
        [members[0].staff_id],
    )
    listed, unexplained = await world.service.staff.list()
    assert listed == members[:1]
    assert set(unexplained) == {members[1].staff_id, "stf_a", "stf_b"}
    for path in ("/backoffice/people", f"/backoffice/partners/{ids['partner']}"):
        page = await visitor.get(path)
        assert page.status_code == 200
        assert ("stf_a" in page.text) == path.endswith("people")


def test_a_long_value_is_cut_and_a_text_of_something_else_is_none():
    """A page stays a page; a name that another text of the group has says nothing of a value."""
    assert stored("stage", "triage") == "Triage"
    assert len(stored("stage", "x" * 300_000)) < 2 * SHOWN_MAX
    assert stored("console.review", "reason") == "unknown value: reason"


async def test_a_row_has_a_partner_ask_under_no_other_name(world, owner):
    """What customers are told of who asks, and of whom they are connected to, is events'."""
    partner, live = await world.partner(), world.service.modes["live"]
    entity = await business(world)
    await partner.connect(entity)
    claim = (await partner.claim(entity)).json()["claim_id"]
    link, invited, done = [
        await link_of(partner),
        *[await onboarding(world, partner, f"{name}@example.com") for name in ("new", "done")],
    ]
    await live.onboardings.complete(done.rpartition("/")[2], "req_1")
    account = f"/account/{entity}/{partner.partner_id}"
    customer = await Visitor(world).sign_in(EMAIL)
    pages = [(Visitor(world), path) for path in (link, invited, f"{done}/done")]
    pages += [
        (customer, path)
        for path in (
            *("/account", account, f"{account}/disconnect", f"{account}/claims/{claim}"),
            *(link, f"/connected/{entity}/{partner.partner_id}"),
        )
    ]
    (row,) = await world.service.partner_list.partners(partner.partner_id)
    owner.execute("update accounts.partners set name = 'Tax Office'")
    for visitor, path in pages:
        page = await visitor.get(path)
        assert (page.status_code, row["name"] in page.text) == (200, True), path
        assert "Tax Office" not in page.text


async def test_a_later_releases_event_keeps_no_customer_from_their_account(world, owner):
    """Nor from disconnecting the partner in whose stream it is."""
    partner, entity = await world.partner(), await business(world)
    await partner.connect(entity)
    claim = (await partner.claim(entity)).json()["claim_id"]
    stream = partner_stream(partner.partner_id)
    (version,) = owner.execute(
        "select max(originator_version) + 1 from accounts.events where originator_id = %s", [stream]
    ).fetchone()
    await write_raw(world.service.accounts, RawEvent(stream, version, "NoSuchThing", b"{}"))
    account = f"/account/{entity}/{partner.partner_id}"
    customer = await Visitor(world).sign_in(EMAIL)
    for path in ("/account", account, f"{account}/disconnect", f"{account}/claims/{claim}"):
        assert (await customer.get(path)).status_code == 200, path
