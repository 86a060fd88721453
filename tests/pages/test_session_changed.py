"""Forms that were opened before their sender signed in, or did so again: nothing is done."""

import re

from service.onboardings.commands import PURPOSE
from service.pages.visit import CSRF_FIELD
from tests.pages.customers import business, refused
from tests.pages.signing_in import EMAIL, asked, is_signed_in
from tests.pages.visitor import FROM_OUR_PAGE, Visitor

DETAILS = {
    "company_name": "New",
    "user_name": "N",
    "email": EMAIL,
    "first_line": "1 Road",
    "locality": "Town",
    "postcode": "AB1 2CD",
    "country": "GB",
}


def token_in(page):
    """Return the token of a page's own form, as the browser would send it."""
    return re.findall(rf'name="{CSRF_FIELD}" value="([^"]*)"', page.text)[-1]


async def sent(visitor, path, token, **fields):
    """Send the form of a page that was opened earlier."""
    form = fields | {CSRF_FIELD: token}
    return await visitor.client.post(path, data=form, headers=FROM_OUR_PAGE)


def led_to(answer):
    """Return where the page leads that says what happened."""
    assert refused(answer, 409, "session_changed") == (
        "You have signed in since you opened that page"
    )
    (path,) = re.findall(r'<a href="([^"]*)">Open the page again</a>', answer.text)
    return path


async def test_an_onboarding_that_was_opened_before_signing_in(world):
    """It is not finished; opened again, as the page says, it can be."""
    partner = await world.partner()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": EMAIL}
    onboarding = (await partner.call("POST", "/onboardings", json=body)).json()
    secrets = await world.service.secrets.get()
    path = f"/onboarding/{secrets.link_token(PURPOSE, onboarding['onboarding_id'])}"
    visitor = Visitor(world)
    token = token_in(await visitor.get(path))
    await visitor.sign_in(EMAIL)
    assert led_to(await sent(visitor, path, token, **DETAILS)) == path
    again = await sent(visitor, path, token_in(await visitor.get(path)), **DETAILS)
    assert (again.status_code, again.headers["location"]) == (303, f"{path}/done")


async def test_a_sign_in_link_in_two_tabs(world):
    """The second is told that the link was used, and who is signed in."""
    visitor = Visitor(world)
    path = f"/sign-in/{await asked(world, visitor)}"
    tabs = [token_in(await visitor.get(path)) for _ in range(2)]
    assert (await sent(visitor, path, tabs[0])).status_code == 303
    answer = await sent(visitor, path, tabs[1])
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    page = await visitor.get(path)
    refused(page, 409, "sign_in_link_used")
    assert f"You are signed in as <strong>{EMAIL}</strong>" in page.text


async def test_another_sign_in_link_of_a_browser_that_is_signed_in_by_now(world):
    """It is not used up, and its page asks again."""
    visitor = Visitor(world)
    paths = [f"/sign-in/{await asked(world, visitor)}" for _ in range(2)]
    tokens = [token_in(await visitor.get(path)) for path in paths]
    await visitor.sign_in("somebody@example.com")
    assert (await sent(visitor, paths[1], tokens[1])).headers["location"] == paths[1]
    asking = await visitor.get(paths[1])
    assert f"<strong>{EMAIL}</strong>" in asking.text
    assert (await sent(visitor, paths[1], token_in(asking))).status_code == 303


async def test_what_was_entered_waits_for_whoever_entered_it(world):
    """The page that is opened again has it, for the same person; nobody's page has nobody's."""
    path, entered = "/console/apply", "Typed before"
    visitor = await Visitor(world).sign_in(EMAIL)
    for token in (token_in(await visitor.get(path)), ""):
        await visitor.sign_in("somebody@example.com")
        assert led_to(await sent(visitor, path, token, company=entered)) == path
        assert entered not in (await visitor.get(path)).text
        await visitor.sign_in(EMAIL)
        assert (entered in (await visitor.get(path)).text) == bool(token)


async def test_a_form_of_an_earlier_session(world):
    """The same person's or another's: nothing is done; but signing out ends the present one."""
    partner = await world.partner()
    entity_id = await business(world, email=EMAIL)
    await partner.connect(entity_id)
    path = f"/account/{entity_id}/{partner.partner_id}/disconnect"
    visitor = await Visitor(world).sign_in(EMAIL)
    page = await visitor.get(path)
    version = await visitor.version(path)
    for email in (EMAIL, "somebody@example.com"):
        await visitor.sign_in(email)
        answer = await sent(visitor, path, token_in(page), version=version)
        assert led_to(answer) == path
        assert await is_signed_in(visitor)
        answer = await sent(visitor, "/sign-out", token_in(page))
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert not await is_signed_in(visitor)
    assert (await partner.claim(entity_id)).status_code == 201
