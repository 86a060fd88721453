"""Sessions: listed, ended, idle; what the log says of who asked for a page."""

import re
from datetime import timedelta

from structlog.testing import capture_logs

from tests.pages.signing_in import EMAIL, is_signed_in, newest_link
from tests.pages.visitor import Visitor
from tests.sessions import moved_in_time
from tests.world import STAFF

TEAM = "team@example.com"


def ends(page, before="/security"):
    """Return the paths of the forms that end a session."""
    return re.findall(rf'action="({before}/sessions/ses_\w+/end)"', page.text)


async def test_a_session_ends_when_it_is_not_used(world, owner):
    """After an hour, by the setting; a visit within it counts, once a minute."""
    visitor = await Visitor(world).sign_in(EMAIL)
    for minutes, holds in ((59, True), (61, False)):
        await moved_in_time(world.service, "sessions", "seen_at", minutes)
        assert await is_signed_in(visitor) is holds, minutes
    other = await Visitor(world).sign_in(EMAIL)
    seen = "select seen_at from accounts.sessions order by started_at desc limit 1"
    assert owner.execute(seen).fetchone() == (None,)
    await moved_in_time(world.service, "sessions", "seen_at", 59)
    assert await is_signed_in(other)
    moment = owner.execute(seen).fetchone()
    assert await is_signed_in(other)
    assert owner.execute(seen).fetchone() == moment


async def test_people_list_and_end_their_own_sessions(world):
    """With network and browser; nobody's else, neither listed nor ended."""
    agent = {"User-Agent": "A browser <b>"}
    first = Visitor(world, "192.0.2.7")
    await first.get("/sign-in")
    await first.post("/sign-in", email=EMAIL, next="/account")
    token = await newest_link(world)
    answer = await first.client.post(
        f"/sign-in/{token}", headers={"Sec-Fetch-Site": "same-origin"} | agent
    )
    assert answer.status_code == 303
    second, third = [await Visitor(world).sign_in(EMAIL) for _ in range(2)]
    stranger = await Visitor(world).sign_in("stranger@example.com")
    page = await second.get("/security")
    assert "192.0.2.7" in page.text
    assert "A browser &lt;b&gt;" in page.text
    paths = ends(page)
    assert len(paths) == 3
    await stranger.post(paths[-1])
    assert await is_signed_in(first)
    assert (await second.post(paths[-1])).headers["location"] == "/security"
    assert [await is_signed_in(one) for one in (first, second, third)] == [False, True, True]
    await second.post("/security/sessions/end")
    assert [await is_signed_in(one) for one in (second, third)] == [True, False]
    assert len(ends(await stranger.get("/security"))) == 1


async def test_the_team_ends_anybodys_sessions(world):
    """One of them, or all; found by the search."""
    await world.service.staff.add(TEAM, STAFF)
    people = [await Visitor(world).sign_in(EMAIL) for _ in range(3)]
    staff = await Visitor(world).sign_in(TEAM)
    found = (await staff.post("/backoffice", sought=EMAIL)).text
    link = re.search(r'href="(/backoffice/people/per_\w+)"', found)
    assert link
    shown = await staff.get(link[1])
    assert link[1].replace("people", "timeline") in shown.text
    history = await staff.get(link[1].replace("people", "timeline"))
    assert (history.status_code, "No events" in history.text) == (200, True)
    paths = ends(shown, link[1])
    assert (await staff.post(paths[0])).headers["location"] == link[1]
    assert [await is_signed_in(one) for one in people] == [True, True, False]
    await staff.post(f"{link[1]}/sign-out")
    assert [await is_signed_in(one) for one in people] == [False] * 3
    assert (await staff.get("/backoffice/people/nobody")).status_code == 404


async def test_ending_other_sessions_asks_for_a_fresh_proof(world, monkeypatch):
    """One of them or all, one's own or somebody's; of the session one is in, none."""
    await world.service.staff.add(TEAM, STAFF)
    here, other = [await Visitor(world).sign_in(EMAIL) for _ in range(2)]
    staff = await Visitor(world).sign_in(TEAM)
    of_person = f"/backoffice/people/{other.person.person_id}"
    monkeypatch.setattr("service.people.sessions.FRESH", timedelta())  # as if it was long ago
    for visitor, page, path in (
        (here, "/security", f"/sessions/{other.person.session_id}/end"),
        (here, "/security", "/sessions/end"),
        (here, "/account", "/sign-out"),
        (staff, of_person, f"/sessions/{other.person.session_id}/end"),
        (staff, of_person, "/sign-out"),
    ):
        answer = await visitor.post(f"{page}{path}")
        assert answer.status_code == 303, page
        assert answer.headers["location"] == f"/proof?next={page}"
    assert [await is_signed_in(one) for one in (here, other)] == [True, True]
    await here.post(f"/security/sessions/{here.person.session_id}/end")
    assert [await is_signed_in(one) for one in (here, other)] == [False, True]


async def test_the_log_says_who_asked_for_a_page_and_from_where(world):
    """Network and person, of the team its member, and neither address of mail nor token."""
    staff_id = await world.service.staff.add(TEAM, STAFF)
    visitor = Visitor(world, "192.0.2.7")
    with capture_logs() as lines:
        await visitor.get("/sign-in/a-secret-token?next=/another-secret")
        await visitor.sign_in(TEAM)
        await visitor.get("/backoffice")
        await visitor.get("/health/live")
        await visitor.client.request("X" * 5000, "/health/live")
        await Visitor(world, "2001:db8:1:2:3:4:5:6").get("/sign-in")
    pages = [line for line in lines if line["event"] == "request"]
    names = ("route", "client_address", "person_id", "staff_id")
    assert [tuple(line[name] for name in names) for line in pages] == [
        ("/sign-in/{token}", "192.0.2.7", None, None),
        ("/backoffice", "192.0.2.7", visitor.person.person_id, staff_id),
        ("/health/live", None, None, None),
        ("unknown", None, None, None),
        ("/sign-in", "2001:db8:1:2::", None, None),
    ]
    assert {line["method"] for line in pages} == {"GET", "other"}  # of any length
    for secret in ("secret", TEAM, visitor.session):
        assert secret not in str(lines)
