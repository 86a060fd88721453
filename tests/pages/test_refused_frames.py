"""Whoever is signed in keeps their navigation where a page is refused."""

from typing import Any

import pytest
from litestar import Request

from service.ledger.database import LedgerError
from service.pages.unrouted import Unrouted
from tests.pages.visitor import Visitor
from tests.world import STAFF

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
async def partner(world) -> str:
    """Return a partner with a team of one."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, "member@example.com", STAFF)
    await world.service.staff.add("staff@example.com", STAFF)
    return partner.partner_id


async def test_a_refused_page_has_the_navigation_of_where_one_was_let_in(world, partner):
    """The console's for a member, the back office's for the team, the areas for everybody else."""
    cases = {
        ("member@example.com", f"/console/{partner}/requests/unknown"): "Developer console",
        ("member@example.com", f"/console/{partner}/nothing"): "Your areas",
        ("staff@example.com", "/backoffice/claims/unknown"): "Back office",
        ("stranger@example.com", f"/console/{partner}/keys"): "Your areas",
        ("stranger@example.com", "/nothing"): "Your areas",
    }
    for (email, path), label in cases.items():
        visitor = await Visitor(world).sign_in(email)
        answer = await visitor.get(path, headers=BROWSER)
        assert answer.status_code in {403, 404}, path
        assert f'<nav aria-label="{label}">' in answer.text, path
        assert 'action="/sign-out"' in answer.text, path


@pytest.mark.usefixtures("partner")
async def test_only_the_team_is_led_to_the_back_office(world):
    """From an address that nothing has."""
    for email, is_led in (("staff@example.com", True), ("member@example.com", False)):
        visitor = await Visitor(world).sign_in(email)
        shown = (await visitor.get("/nothing", headers=BROWSER)).text
        assert ('href="/backoffice"' in shown) == is_led


async def test_nobody_gets_a_navigation_and_programs_the_envelope(world):
    """A page asks for nobody's sign-in, and no session is looked up for a program."""
    nobody = await Visitor(world).get("/nothing", headers=BROWSER)
    assert (nobody.status_code, "<nav" in nobody.text) == (404, False)
    program = await (await Visitor(world).sign_in("member@example.com")).get("/nothing")
    assert program.json()["code"] == "not_found"


async def test_an_address_is_not_found_while_the_database_is_away():
    """Whoever asks is not known then, and the page says what it would say to anybody."""

    class Away:
        async def recognise(self, _scope: object) -> None:
            raise LedgerError

    away: Any = Away()
    scope: dict[str, Any] = {"type": "http", "state": {}}
    await Unrouted(away, None).recognise(Request(scope))
    assert "areas" not in scope["state"]
