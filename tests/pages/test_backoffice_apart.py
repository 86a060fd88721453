"""The back office at a host of its own: what answers where, links in mails, sessions, passkeys."""

import re

import pytest

from service.mail.transport import mail_transport
from service.pages.visit import COOKIE
from service.people.mail import SignInMail
from tests.authenticator import Authenticator
from tests.pages.visitor import Visitor, ceremony
from tests.tables import every_row
from tests.world import PUBLIC_URL, STAFF, settings_for, world_on

TEAM_URL = "https://team.api.example.com"
TEAM = "team@example.com"


@pytest.fixture
async def world(database_url, tmp_path):
    """Return a service whose back office is at a host of its own."""
    settings = settings_for(database_url, tmp_path / "mail", BACKOFFICE_URL=TEAM_URL)
    async with world_on(settings, tmp_path / "mail", follow=False) as one:
        yield one


def at_team(world):
    """Return a visitor of the back office's host."""
    visitor = Visitor(world)
    visitor.client.base_url = TEAM_URL
    return visitor


async def link_in_mail(world):
    """Send the sign-in mail that is due; return the link in it."""
    service = world.service
    mail = SignInMail(
        *(service.accounts.database, service.secrets, service.accounts.master_keys),
        mail_transport(service.settings.smtp_url),
        public_url=PUBLIC_URL,
        sender=service.settings.mail_from,
    )
    assert await mail.step() == 1
    (path,) = world.mail_dir.iterdir()
    text = path.read_text()
    path.unlink()
    found = re.search(r"^https://\S+$", text, re.MULTILINE)
    assert found, text
    return found[0]


async def test_each_host_answers_its_own_routes_alone(world):
    """Elsewhere they are not found, for whoever is signed in, too; health is everywhere."""
    await world.service.staff.add(TEAM, STAFF)
    public, team = await Visitor(world).sign_in(TEAM), at_team(world)
    for one in (public, team):  # the contract knows no answer of this host
        one.client.event_hooks = {}
    answers = {
        "/sign-in": (200, 200),
        "/health/live": (200, 200),
        "/": (200, 303),
        "/backoffice": (404, 303),
        "/backoffice/people": (404, 303),
        "/account": (200, 404),
        "/console": (200, 404),
        "/connect/x": (400, 404),
        "/docs": (200, 404),
        "/v1/claims": (401, 404),
    }
    with every_row() as row:
        for path, expected in answers.items():
            with row(path):
                got = [(await one.get(path)).status_code for one in (public, team)]
                assert tuple(got) == expected
    assert "/backoffice" not in (await public.get("/")).text
    foreign = await team.client.post(
        "/sign-in", data={"email": TEAM}, headers={"Origin": PUBLIC_URL}
    )
    assert foreign.status_code == 403


async def test_the_team_signs_in_at_its_own_host(world):
    """By a link that leads there, with a passkey that was made there or at the public host.

    A session is the host's alone, and so is what a page of it had a browser sign.
    """
    await world.service.staff.add(TEAM, STAFF)
    visitor = at_team(world)
    await visitor.get("/sign-in")
    await visitor.post("/sign-in", email=TEAM, next="")
    link = await link_in_mail(world)
    assert link.startswith(f"{TEAM_URL}/sign-in/")
    answer = await visitor.post(link.removeprefix(TEAM_URL))
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice")
    cookie = answer.headers["set-cookie"]
    assert COOKIE in cookie
    assert "domain" not in cookie.lower()
    assert (await visitor.get("/backoffice")).headers["location"] == "/proof?next=/backoffice"
    for origin, code in ((PUBLIC_URL, 400), (TEAM_URL, 303)):
        options, challenge = await ceremony(visitor, "/security/passkey")
        key = Authenticator(origin=origin, host="api.example.com")
        made = await visitor.post(
            "/security/passkey",
            challenge=challenge,
            credential=key.create(options),
            next="/backoffice",
        )
        assert made.status_code == code, origin
    assert (await visitor.get("/backoffice")).status_code == 200
    public = Visitor(world)
    await public.post("/sign-in", email="customer@example.com", next="")
    assert (await link_in_mail(world)).startswith(f"{PUBLIC_URL}/sign-in/")
