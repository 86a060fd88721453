"""Customers without a browser: their businesses, the links that partners send them, refusals."""

import re
from uuid import uuid4

from service.onboardings.commands import PURPOSE
from tests.pages.visitor import local
from tests.world import STAFF

EMAIL = "customer@example.com"


def mailbox():
    """Return an email address that is not in use yet."""
    return f"{uuid4().hex}@example.com"


async def link_of(partner):
    """Return the path of a fresh connect link."""
    answer = await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
    return local(answer.json()["connect_url"])


async def onboarding(world, partner, email="new@example.com", **more):
    """Return the path of a new onboarding's link, as it is mailed."""
    body = {"partner_user_id": email, "company_name": "New", "user_email": email} | more
    answer = await partner.call("POST", "/onboardings", json=body)
    secrets = await world.service.secrets.get()
    return f"/onboarding/{secrets.link_token(PURPOSE, answer.json()['onboarding_id'])}"


async def business(world, name="Bakery", email=EMAIL, **more):
    """Return the id of an established business."""
    return await world.service.modes["live"].entities.add(name, email, None, STAFF, **more)


def refused(answer, status, code):
    """Return whether a page has this status and code and links onwards."""
    assert answer.status_code == status, answer.text
    assert f"<code>{code}</code>" in answer.text
    assert str(status) in answer.text
    title = re.search(r"<h1>(.+?)</h1>", answer.text)
    assert title
    return title[1]
