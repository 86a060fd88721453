"""The team's work in the back office: each action is an event that names its actor."""

import re

import psycopg
import pytest
from playwright.sync_api import expect

from service.facts.claims import ClaimCreated, ClaimStageChanged, FirstMessagePosted
from service.facts.connections import EntityConnected, EntityDisconnected, connection_stream
from service.facts.partners import PartnerApproved, PartnerDeclined, PartnerRevoked, partner_stream
from service.facts.people import PersonalDataOpened, opened_stream
from tests.patience import until
from tests.world import STAFF, claim_body

PAYLOAD = "<script>document.title='x'</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"


@pytest.fixture
def team(site):
    """Return a page of a signed-in member of the team, and the actor of their events."""
    email = site.mailbox()
    staff_id = site.do(lambda service: service.staff.add(email, STAFF))
    page = site.visitor()
    site.sign_in(page, email)
    return page, f"staff:{staff_id}"


def last_event(site, ledger, stream):
    """Return the newest event of a stream, and its actor."""

    async def read(service):
        parts = {one.name: one for one in service.ledgers}[ledger]
        async with parts.transaction() as transaction:
            return (await transaction.read(stream))[-1]

    recorded = site.do(read)
    return recorded.event, recorded.meta.actor


def applied(site, company="Ledger Books", use="To refer our customers."):
    """Return the id of a partner that awaits review."""
    return site.do(
        lambda service: service.partners.apply(
            company=company, contact_name="Dev", use=use, email=site.mailbox(), cause=STAFF
        )
    )


def connected(site, email=None, name="Bakery"):
    """Return a partner's id and key, and a business connected to it."""
    partner_id, key = site.partner("Partner of " + name)
    entity_id = site.entity(email or site.mailbox(), name)

    async def connect(service):
        await service.modes["live"].connections.connect_by_staff(entity_id, partner_id, STAFF)

    site.do(connect)
    return partner_id, key, entity_id


def claimed(site, **more):
    """Return the id of a claim and its entity's."""
    _, key, entity_id = connected(site)
    answer = site.api(key, "POST", "/claims", json=claim_body(entity_id, **more))
    assert answer.status_code == 201, answer.text
    return answer.json()["claim_id"], entity_id


def issued_link(site, partner_id):
    """Return the id of an issued link: the answer contains only the link itself."""
    with psycopg.connect(site.database_url) as connection:
        statement = "select link_id from live.connect_links where partner_id = %s"
        return connection.execute(statement, [partner_id]).fetchone()[0]


def search(page, sought):
    """Search from the home page."""
    page.goto("/backoffice")
    page.get_by_label("ID, email address, partner or reference").fill(sought)
    page.get_by_role("button", name="Search").click()


def test_a_pending_partner_is_approved(site, team):
    """From the list to the application to the approval, whose event names who approved."""
    page, actor = team
    partner_id = applied(site, "Approved Books")
    page.goto("/backoffice")
    page.get_by_role("link", name="Partners", exact=True).click()
    page.get_by_role("link", name="Approved Books").click()
    expect(page.get_by_text("To refer our customers.")).to_be_visible()
    page.get_by_label("Internal note").fill("Called them.")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("approved")
    expect(page.get_by_label("Internal note")).to_have_value("Called them.")
    approved = PartnerApproved(partner_id=partner_id)
    assert last_event(site, "accounts", partner_stream(partner_id)) == (approved, actor)


def test_on_a_phone_the_buttons_that_decide_are_as_wide_as_their_fields(site, team):
    """As those of other forms are."""
    page, _ = team
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/backoffice/partners/{applied(site)}")
    form = page.locator("form[action$=review]")
    places = ("#reason", "button.primary", "button.danger")
    widths = {form.locator(place).bounding_box()["width"] for place in places}
    assert len(widths) == 1


def test_a_pending_partner_is_declined_with_a_reason(site, team):
    """A reason is required; it is stored encrypted for the applicant."""
    page, actor = team
    partner_id = applied(site)
    page.goto(f"/backoffice/partners/{partner_id}")
    page.locator("form[action$=review]").evaluate("form => form.noValidate = true")
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_role("alert").filter(has_text="Give a reason")).to_be_focused()
    assert site.do(lambda service: service.partners.look(partner_id)).status == "pending"
    page.get_by_label("Reason").fill("No imprint.\nNo address.")
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("declined")
    expect(page.get_by_text("No imprint.")).to_be_visible()
    event, by = last_event(site, "accounts", partner_stream(partner_id))
    assert isinstance(event, PartnerDeclined)
    assert (event.reason.splitlines(), by) == (["No imprint.", "No address."], actor)


def test_revoking_is_confirmed(site, team):
    """The page explains the effect; afterwards the partner's keys are refused."""
    page, actor = team
    partner_id, key, entity_id = connected(site)
    page.goto(f"/backoffice/partners/{partner_id}")
    page.get_by_role("link", name="Revoke access").click()
    assert site.api(key, "GET", f"/claims?entity_id={entity_id}").status_code == 200
    page.get_by_role("button", name="Revoke access").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("revoked")
    refused = site.api(key, "GET", f"/claims?entity_id={entity_id}")
    assert (refused.status_code, refused.json()["code"]) == (401, "auth_revoked")
    revoked = PartnerRevoked(partner_id=partner_id)
    assert last_event(site, "accounts", partner_stream(partner_id)) == (revoked, actor)


def test_a_partners_keys_settings_and_people_are_shown(site, team):
    """Keys have their last use, and no secret is shown."""
    page, _ = team
    partner_id, key, entity_id = connected(site)
    member = site.mailbox()
    site.do(lambda service: service.partners.add_member(partner_id, member, STAFF))
    page.goto(f"/backoffice/partners/{partner_id}")
    row = page.get_by_role("row").filter(has_text=key.split(".")[1])
    expect(row).to_contain_text("never")
    site.logged(site.api(key, "GET", f"/claims?entity_id={entity_id}").headers["x-request-id"])
    expect(page.get_by_text(member)).to_be_visible()
    expect(reloaded(page, row)).not_to_contain_text("never")
    assert key.rpartition(".")[2] not in page.content()


def reloaded(page, row):
    """Reload a page until a call is logged, which takes a second or two."""
    until(lambda: page.reload() and "never" not in row.inner_text(), look=0.2)
    return row


def test_an_entity_is_connected_to_a_partner(site, team):
    """After a confirmation the id to pass on is shown, and the partner can create claims."""
    page, actor = team
    partner_id, key = site.partner("Handed Books")
    entity_id = site.entity(site.mailbox(), "Handed Bakery")
    page.goto(f"/backoffice/entities/{entity_id}")
    page.get_by_label("Partner ID").fill("ptn_unknown")
    page.get_by_role("button", name="Continue").click()
    alert = page.get_by_role("alert").filter(has_text="No approved partner has this ID.")
    expect(alert).to_be_focused()
    page.get_by_label("Partner ID").fill(partner_id)
    page.get_by_role("button", name="Continue").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Connect Handed Bakery to Handed Books?")
    assert site.api(key, "POST", "/claims", json=claim_body(entity_id)).status_code == 403
    page.get_by_role("button", name="Connect and show entity ID").click()
    expect(page.locator(".copyable code")).to_have_text(entity_id)
    expect(page.get_by_role("button", name="Copy")).to_be_visible()
    assert site.api(key, "POST", "/claims", json=claim_body(entity_id)).status_code == 201
    made = EntityConnected(partner_id=partner_id, entity_id=entity_id, via="staff")
    stream = connection_stream("live", partner_id, entity_id)
    assert last_event(site, "live", stream) == (made, actor)


def test_disconnecting_for_a_customer_is_confirmed(site, team):
    """Afterwards the partner's writes are refused, and the entity's page shows it."""
    page, actor = team
    partner_id, key, entity_id = connected(site)
    page.goto(f"/backoffice/entities/{entity_id}")
    page.get_by_role("link", name="Disconnect").click()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("disconnected", exact=True)).to_be_visible()
    refused = site.api(key, "POST", "/claims", json=claim_body(entity_id))
    assert (refused.status_code, refused.json()["code"]) == (403, "partner_disconnected")
    gone = EntityDisconnected(partner_id=partner_id, entity_id=entity_id)
    stream = connection_stream("live", partner_id, entity_id)
    assert last_event(site, "live", stream) == (gone, actor)


def test_a_claim_is_moved(site, team):
    """To a listed stage, from the claim's page."""
    page, actor = team
    claim_id, _ = claimed(site)
    search(page, claim_id)
    page.get_by_label("Stage").select_option("negotiation")
    page.get_by_role("button", name="Move").click()
    expect(page.locator("dl .tag").filter(has_text="negotiation")).to_be_visible()
    row = site.do(lambda service: service.modes["live"].claim_list.by_id(claim_id))
    moved = ClaimStageChanged(claim_id=claim_id, stage="negotiation")
    assert last_event(site, "live", row["stream_id"]) == (moved, actor)


def test_personal_data_is_opened_on_demand_and_recorded(site, team):
    """A claim's page hides it; opening shows it once and appends an event."""
    page, actor = team
    claim_id, _ = claimed(site, message="Nobody answers our letters.")
    page.goto(f"/backoffice/claims/{claim_id}")
    for secret in ("Debtor", "Nobody answers", "INV-1"):
        assert secret not in page.content()
    with page.expect_response(re.compile("/personal$")) as answered:
        page.get_by_role("button", name="Open personal data").click()
    expect(page.get_by_text("Debtor")).to_be_visible()
    expect(page.get_by_text("Nobody answers our letters.")).to_be_visible()
    assert answered.value.headers["cache-control"] == "no-store"
    stream = opened_stream(answered.value.headers["x-request-id"], claim_id)
    opened = PersonalDataOpened(staff_id=actor.removeprefix("staff:"), claim_id=claim_id)
    assert last_event(site, "accounts", stream) == (opened, actor)
    page.goto(f"/backoffice/claims/{claim_id}")
    assert "Debtor" not in page.content()


def test_any_id_is_found(site, team):
    """Claims, businesses and partners lead to their pages; other ids to what they belong to."""
    page, actor = team
    claim_id, entity_id = claimed(site)
    partner_id, key, _ = connected(site)
    body = {"partner_user_id": "u", "company_name": "New", "user_email": site.mailbox()}
    answer = site.api(key, "POST", "/onboardings", json=body)
    onboarding_id = answer.json()["onboarding_id"]
    site.api(key, "POST", "/connect-requests", json={"partner_user_id": "u"})
    link_id = issued_link(site, partner_id)
    for sought, kind in ((claim_id, "claims"), (entity_id, "entities"), (partner_id, "partners")):
        search(page, sought)
        page.wait_for_url(f"/backoffice/{kind}/{sought}")
    for sought, kind, leads in (
        (key.split(".")[1], "API key", "partners"),
        (onboarding_id, "Onboarding", "entities"),
        (link_id, "Connect link", "partners"),
        (actor.removeprefix("staff:"), "Member of our team", None),
    ):
        search(page, sought)
        row = page.get_by_role("row").filter(has_text=sought)
        expect(row.get_by_role("cell").first).to_have_text(kind)
        if leads:
            expect(row.locator(f"a[href^='/backoffice/{leads}/']").first).to_be_visible()


def test_a_request_is_found(site, team):
    """By the id in its answer: the call, its outcome and its partner."""
    page, _ = team
    partner_id, key, _ = connected(site)
    answer = site.api(key, "GET", "/claims?entity_id=ent_none")
    site.logged(answer.headers["x-request-id"])
    search(page, answer.headers["x-request-id"])
    row = page.get_by_role("row").filter(has_text="GET /v1/claims")
    expect(row).to_contain_text("404 entity_not_found")
    expect(row.get_by_role("link", name=partner_id)).to_be_visible()


def test_an_address_is_found_wherever_it_is(site, team):
    """A business's, a contact's or a member's, however it is written."""
    page, _ = team
    email = site.mailbox()
    entity_id = site.entity(email, "Addressed Bakery")
    partner_id = site.do(lambda service: service.partners.add("Addressed", email, STAFF))
    site.do(lambda service: service.partners.add_member(partner_id, email, STAFF))
    search(page, email.upper())
    assert "?" not in page.url
    expect(page.get_by_role("link", name=entity_id, exact=True)).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Partner").first).to_contain_text(partner_id)
    expect(page.get_by_role("row").filter(has_text="Team member")).to_have_count(1)


def test_a_name_cannot_be_searched_for(site, team):
    """The page says why instead of showing no results."""
    page, _ = team
    site.entity(site.mailbox(), "Sealed Bakery")
    search(page, "Sealed Bakery")
    expect(page.locator(".empty")).to_contain_text("are encrypted and can't be searched")


def test_claims_of_a_business_are_paged(site, team):
    """Newest first, each once, whoever created them."""
    page, _ = team
    _, key, entity_id = connected(site)
    for number in range(60):
        body = claim_body(entity_id, f"case-{number}")
        assert site.api(key, "POST", "/claims", json=body).status_code == 201
    page.goto(f"/backoffice/entities/{entity_id}")
    first = page.locator("a[href^='/backoffice/claims/']").all_inner_texts()
    page.get_by_role("link", name="Older claims").click()
    page.wait_for_url(f"/backoffice/entities/{entity_id}?*before=*")
    second = page.locator("a[href^='/backoffice/claims/']").all_inner_texts()
    assert (len(first), len(second), len({*first, *second})) == (50, 10, 60)


def test_a_script_in_every_field_stays_text(site, team):
    """What partners, customers and the team write is shown literally, and nothing runs."""
    page, _ = team
    site.keep_apart(page)
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    partner_id = applied(site, PAYLOAD, PAYLOAD)
    site.do(lambda service: service.partners.decline(partner_id, STAFF, PAYLOAD))
    page.goto(f"/backoffice/partners/{partner_id}")
    expect(page.get_by_text(PAYLOAD)).to_have_count(3)
    page.goto("/backoffice/partners?state=declined")
    expect(page.get_by_text(PAYLOAD).first).to_be_visible()
    _, key, entity_id = connected(site, name=PAYLOAD)
    body = claim_body(entity_id, PAYLOAD, message=PAYLOAD, partner_user_id=PAYLOAD)
    body |= {"partner_invoice_ids": [PAYLOAD], "defendant": {"name": PAYLOAD}}
    claim_id = site.api(key, "POST", "/claims", json=body).json()["claim_id"]
    page.goto(f"/backoffice/entities/{entity_id}")
    expect(page.get_by_role("heading", level=1)).to_have_text(PAYLOAD)
    page.get_by_role("link", name="Disconnect").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(PAYLOAD)
    page.goto(f"/backoffice/claims/{claim_id}")
    expect(page.get_by_text(PAYLOAD)).to_have_count(4)
    page.get_by_role("button", name="Open personal data").click()
    expect(page.locator("dd").filter(has_text=PAYLOAD)).to_have_count(6)
    search(page, PAYLOAD)
    expect(page.get_by_label("ID, email address, partner or reference")).to_have_value(PAYLOAD)
    page.goto(f"/backoffice/claims/{'%3Cscript%3Ealert(1)%3C%2Fscript%3E'}")
    assert not alerts
    assert page.title() != "x"


def test_a_claims_timeline_is_shown(site, team):
    """Each event names its actor; encrypted fields are named, not shown."""
    page, actor = team
    claim_id, _ = claimed(site, message="Nobody answers our letters.")
    page.goto(f"/backoffice/claims/{claim_id}")
    page.get_by_label("Stage").select_option("negotiation")
    page.get_by_role("button", name="Move").click()
    page.get_by_role("button", name="Open personal data").click()
    page.get_by_role("link", name="History").click()
    expect(page.locator("summary")).to_have_text(
        meanings(PersonalDataOpened, ClaimStageChanged, FirstMessagePosted, ClaimCreated)
    )
    moved = page.get_by_role("row").filter(has_text="ClaimStageChanged")
    expect(moved).to_contain_text("negotiation")
    expect(moved).to_contain_text(actor)
    posted = page.get_by_role("row").filter(has_text="FirstMessagePosted")
    posted.locator("summary").click()
    expect(posted.get_by_text("encrypted", exact=True)).to_be_visible()
    assert "Nobody answers" not in page.content()
    page.get_by_label("Ledger").select_option("test")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No event here matches.")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    posted.locator("summary").click()
    posted.get_by_role("link", name="req_").click()
    page.wait_for_url("/backoffice/timeline/req_*")
    expect(page.locator("summary")).to_have_text(meanings(FirstMessagePosted, ClaimCreated))


def meanings(*events):
    """Return what timelines say of events: the first sentence of what the catalogue has."""
    lines = [event.__doc__.partition("\n")[0] for event in events]
    return [line.partition(". ")[0].rstrip(".") + "." for line in lines]


def test_the_health_of_each_ledger_is_shown(team):
    """Its log's size, its read models and subscribers, and its checkpoints."""
    page, _ = team
    page.goto("/backoffice")
    page.get_by_role("link", name="Health").click()
    for ledger in ("accounts", "live", "test"):
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=ledger))
        expect(row).to_have_count(2)  # of the logs, of the checkpoints
        expect(row.first).to_contain_text("ok")
        expect(row.last).to_contain_text("not signed yet")
    for model in ("claim_list", "activity", "mail", "partners", "staff"):
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=model))
        expect(row.first).to_be_visible()


def test_a_removed_team_member_loses_access_at_once(site):
    """The session continues but opens no page of the team."""
    email = site.mailbox()
    site.do(lambda service: service.staff.add(email, STAFF))
    page = site.visitor()
    site.sign_in(page, email, "/backoffice")
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    site.do(lambda service: service.staff.remove(email, STAFF))
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("This page is for our team")
