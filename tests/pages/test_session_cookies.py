"""The cookie of a session: which one counts, and what ends it."""

from service.pages.visit import COOKIE, CSRF_FIELD
from tests.pages.signing_in import EMAIL, asked, is_signed_in, run, set_cookies, visitor_with
from tests.pages.visitor import FROM_OUR_PAGE, Visitor


async def test_signing_in_renews_the_session(world):
    """An existing session ends, so a stolen copy of its cookie is worthless."""
    visitor, thief = await Visitor(world).sign_in(EMAIL), Visitor(world)
    thief.keep(visitor.session or "")
    assert await is_signed_in(thief)
    token = await asked(world, visitor)
    assert (await visitor.post(f"/sign-in/{token}")).status_code == 303
    assert visitor.session != thief.session
    assert (await is_signed_in(visitor), await is_signed_in(thief)) == (True, False)


async def test_planted_cookies_are_not_adopted(world):
    """Signing in always creates a new session, whatever cookie was sent."""
    visitor = Visitor(world)
    visitor.keep("planted-by-somebody-else")
    token = await asked(world, visitor)
    answer = await visitor.post(f"/sign-in/{token}")
    assert not any("planted" in one for one in set_cookies(answer))
    assert not await is_signed_in(visitor_with(world, f"{COOKIE}=planted-by-somebody-else"))


async def test_two_session_cookies_are_ignored(world):
    """One of them was planted, and nobody can tell which."""
    good = (await Visitor(world).sign_in(EMAIL)).session
    assert await is_signed_in(visitor_with(world, f"a=b; {COOKIE}={good}; c=d"))
    for pair in (f"{COOKIE}={good}; {COOKIE}=x", f"{COOKIE}=x; {COOKIE}={good}"):
        assert not await is_signed_in(visitor_with(world, pair))


async def test_other_cookies_are_no_session(world):
    """Only the `__Host-` name counts, which other hosts and plain HTTP cannot set."""
    good = (await Visitor(world).sign_in(EMAIL)).session
    for name in ("session", "__host-session", "__Secure-session"):
        assert not await is_signed_in(visitor_with(world, f"{name}={good}"))


async def test_signing_out_ends_the_session_on_the_server(world):
    """A stolen cookie stops working; the browser is told to delete its own."""
    visitor, other = await Visitor(world).sign_in(EMAIL), await Visitor(world).sign_in(EMAIL)
    stolen = visitor_with(world, f"{COOKIE}={visitor.session}")
    assert await is_signed_in(stolen)
    answer = await visitor.post("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert (await is_signed_in(stolen), await is_signed_in(other)) == (False, True)


async def test_signing_out_everywhere(world):
    """All sessions of the person end, and nobody else's."""
    mine = [await Visitor(world).sign_in(EMAIL) for _ in range(3)]
    somebody = await Visitor(world).sign_in("somebody@example.com")
    copies = [visitor_with(world, f"{COOKIE}={one.session}") for one in mine]
    answer = await mine[0].post("/account/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert [await is_signed_in(one) for one in copies] == [False] * 3
    assert await is_signed_in(somebody)


async def test_sessions_expire_by_the_database_s_clock(world):
    """After twelve hours, whatever the browser keeps."""
    visitor = await Visitor(world).sign_in(EMAIL)
    lasts = "select expires_at - started_at = interval '12 hours' from accounts.sessions"
    async with world.service.accounts.transaction() as transaction:
        assert await transaction.connection.fetchval(lasts)
    await run(world, "update accounts.sessions set expires_at = now()")
    assert not await is_signed_in(visitor)


async def test_a_form_of_another_person_s_session_is_refused(world):
    """A form's token belongs to one session."""
    mine, other = await Visitor(world).sign_in(EMAIL), await Visitor(world).sign_in(EMAIL)
    form = {CSRF_FIELD: other.csrf}
    answer = await mine.client.post("/security/sessions/end", data=form, headers=FROM_OUR_PAGE)
    assert answer.status_code == 409
    assert await is_signed_in(mine)
