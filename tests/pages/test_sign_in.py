"""Signing in and out over HTTP: answers, limits, and what ends a session."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from service.pages.shell import safe_path
from service.pages.sign_in import BROWSER_COOKIE, KNOWN_COOKIE
from service.pages.visit import COOKIE, CSRF_FIELD, FORM_BYTES_MAX
from service.people.sign_in import ASKED_MAX, PURPOSE
from tests.database_proxy import proxied
from tests.pages.visitor import FROM_OUR_PAGE, Visitor, site_map_of
from tests.world import STAFF, settings_for, world_on

EMAIL = "person@example.com"
NETWORK_MAX = 20
SENT = "/sign-in/sent"
ELSEWHERE = [
    *(
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "///evil.example",
        "/.//evil.example",
    ),
    *("https://evil.example", "https:evil.example", "http:///evil.example", "evil.example"),
    *("javascript:alert(1)", "data:text/html,x", "/\t/evil.example", "/\n/evil.example"),
    *("\t//evil.example", " //evil.example", "/a\r\nSet-Cookie: x=y", "/\x7f", "/a\u2028b"),
    *("/\N{FULLWIDTH SOLIDUS}evil.example", "/\xe4", "/a//evil.example", "/..//evil.example"),
    *("", "?x", "#x", "/" + "x" * 600),
]


async def newest_link(world):
    """Return the token of the newest link."""
    async with world.service.accounts.transaction() as transaction:
        row = await transaction.connection.fetchrow(
            "select link_id from accounts.sign_in_links order by asked_at desc, link_id desc"
        )
    return (await world.service.secrets.get()).link_token(PURPOSE, row["link_id"])


async def count(world, table):
    """Return the number of rows in a table of the accounts ledger."""
    statement = {
        "sessions": "select count(*) from accounts.sessions",
        "sign_in_links": "select count(*) from accounts.sign_in_links",
    }[table]
    async with world.service.accounts.transaction() as transaction:
        return await transaction.connection.fetchval(statement)


async def run(world, statement):
    """Run a statement."""
    async with world.service.accounts.transaction() as transaction:
        await transaction.connection.execute(statement)


async def asked(world, visitor, next_path="/account", email=EMAIL):
    """Request a link as a person does; return its token."""
    answer = await visitor.post("/sign-in", email=email, next=next_path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in/sent")
    return await newest_link(world)


def set_cookies(answer):
    """Return the cookies that an answer sets."""
    return answer.headers.get_list("set-cookie")


async def is_signed_in(visitor):
    """Return whether the account page opens."""
    return (await visitor.get("/account")).status_code == 200


async def test_signing_in_leads_to_the_requested_page(world):
    """The confirmation page names the address."""
    visitor = Visitor(world)
    token = await asked(world, visitor, "/account/a/b?from=c")
    confirm = await visitor.get(f"/sign-in/{token}")
    assert f"<strong>{EMAIL}</strong>" in confirm.text
    assert 'name="code"' not in confirm.text
    answer = await visitor.post(f"/sign-in/{token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/account/a/b?from=c")
    (cookie,) = [one for one in set_cookies(answer) if one.startswith(f"{COOKIE}=")]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert attributes == {"httponly", "secure", "path=/", "samesite=lax", "max-age=43200"}
    assert await is_signed_in(visitor)
    again = await Visitor(world).post(f"/sign-in/{token}")
    assert (again.status_code, "sign_in_link_used" in again.text) == (409, True)


async def test_another_browser_needs_the_code_and_is_led_home(world):
    """Whoever asks for an address's link, and sends it on, signs nobody in and leads nobody on.

    The code is shown in the browser that asked. A wrong one uses nothing up.
    """
    asking, other = Visitor(world), Visitor(world, "192.0.2.2")
    token = await asked(world, asking, "/connect/declined")
    code = await code_shown(asking)
    confirm = await other.get(f"/sign-in/{token}")
    assert (confirm.status_code, 'name="code"' in confirm.text) == (200, True)
    assert code not in confirm.text
    for wrong in ("", "BCDF-GHJK", code[:-1], f"{code}B", "\u00e9" * 64, "x" * 5000):
        answer = await other.post(f"/sign-in/{token}", code=wrong)
        assert (answer.status_code, 'id="code-fault"' in answer.text) == (400, True), wrong
    assert await count(world, "sessions") == 0
    answer = await other.post(f"/sign-in/{token}", code=code.lower().replace("-", " "))
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert (await is_signed_in(other), await is_signed_in(asking)) == (True, False)


async def test_a_browser_keeps_its_code_and_no_other_has_it(world):
    """The earlier of two mails works in it, too; what is no token of ours is replaced."""
    visitor, other = Visitor(world), Visitor(world, "192.0.2.2")
    first = await asked(world, visitor)
    code = await code_shown(visitor)
    await asked(world, visitor)
    await asked(world, other)
    assert await code_shown(visitor) == code != await code_shown(other)
    assert (await visitor.post(f"/sign-in/{first}")).status_code == 303
    assert BROWSER_COOKIE not in visitor.client.cookies
    assert "<code>" not in (await visitor.get(SENT)).text
    other.client.cookies.clear()
    other.client.headers["Cookie"] = f"{BROWSER_COOKIE}=planted"
    answer = await other.post("/sign-in", email=EMAIL, next="")
    assert "planted" not in answer.headers["set-cookie"]


async def test_codes_are_charged_to_their_link(world):
    """Twenty a minute, from however many networks; the browser that asked is not kept out."""
    asking = Visitor(world)
    token = await asked(world, asking)
    for number in range(NETWORK_MAX):
        guessing = Visitor(world, f"192.0.2.{number}")
        assert (await guessing.post(f"/sign-in/{token}", code="BCDFGHJK")).status_code == 400
    blocked = await Visitor(world, "192.0.2.99").post(f"/sign-in/{token}", code="BCDFGHJK")
    assert blocked.status_code == 429
    assert (await asking.post(f"/sign-in/{token}")).status_code == 303


async def code_shown(visitor):
    """Return the code that a browser shows which has asked for a link."""
    (code,) = re.findall(r"<code>([A-Z]{4}-[A-Z]{4})</code>", (await visitor.get(SENT)).text)
    return code


async def test_next_accepts_our_paths_only(world):
    """Other values are dropped, in the form and in the link."""
    for number, path in enumerate(ELSEWHERE):
        visitor = Visitor(world, f"192.0.2.{number}")
        page = await visitor.get("/sign-in", params={"next": path})
        assert 'name="next" value=""' in page.text, path
        token = await asked(world, visitor, path, f"p{number}@example.com")
        answer = await visitor.post(f"/sign-in/{token}")
        assert answer.headers["location"] == "/account", path


async def test_a_form_leads_back_to_its_page(world):
    """The nearest path that answers GET."""
    site_map = site_map_of(world.service)
    for form, page in (
        ("/account/ent_a/ptn_b/disconnect", "/account/ent_a/ptn_b/disconnect"),
        ("/account/sign-out", "/account"),
        ("/backoffice/claims/clm_a/stage", "/backoffice/claims/clm_a"),
        ("/backoffice/partners/ptn_a/approve", "/backoffice/partners/ptn_a"),
        ("/console/ptn_a/sandbox/entities/ent_b", "/console/ptn_a/sandbox"),
        ("/no/such/page", "/"),
    ):
        assert site_map.page_of_form(form) == page


@pytest.mark.parametrize(
    "path", ["/", "/account", "/connect/a_B-9", "/a?b=c&d=%2F%2Fe", "/%2f%2fx"]
)
def test_our_own_paths_stay(path):
    """Encoded slashes are not slashes to a browser, so such a path stays on this host."""
    assert safe_path(path, "/other") == path


@pytest.mark.parametrize(
    ("who", "home"),
    [
        ("staff", "/backoffice"),
        ("staff who is a member", "/backoffice"),
        ("member", "/console"),
        ("former staff", "/account"),
        ("customer", "/account"),
    ],
)
async def test_without_a_destination_everybody_lands_on_their_home(world, who, home):
    """The team, developers and customers each have their own."""
    service = world.service
    if "staff" in who:
        await service.staff.add(EMAIL, STAFF)
    if "former" in who:
        await service.staff.remove(EMAIL, STAFF)
    if "member" in who:
        partner_id = await service.partners.add("Books", "books@example.com", STAFF)
        await service.partners.add_member(partner_id, EMAIL, STAFF)
    visitor = Visitor(world)
    token = await asked(world, visitor, "")
    assert (await visitor.post(f"/sign-in/{token}")).headers["location"] == home
    other = Visitor(world)
    token = await asked(world, other, "/connect/declined")
    answer = await other.post(f"/sign-in/{token}")
    assert answer.headers["location"] == "/connect/declined"


async def test_the_home_page_lists_the_persons_areas(world):
    """The back office is for the team; account and console are for everybody."""
    await world.service.staff.add("team@example.com", STAFF)
    visitors = [
        Visitor(world),
        await Visitor(world).sign_in(EMAIL),
        await Visitor(world).sign_in("team@example.com"),
    ]
    pages = [(await visitor.get("/")).text for visitor in visitors]
    assert ['href="/backoffice"' in page for page in pages] == [False, False, True]
    assert all('href="/account"' in page and 'href="/console"' in page for page in pages)
    nobody = (await visitors[1].get("/account")).text
    assert 'href="/console"' in nobody
    assert 'href="/sign-in"' in nobody  # with another address
    assert "Apply for a partner account" in (await visitors[1].get("/console")).text


async def test_a_form_of_a_session_that_ended_leads_back_to_its_page(world):
    """After signing in again the person is on the form's page."""
    stranger, visitor = Visitor(world), await Visitor(world).sign_in(EMAIL)
    for page in site_map_of(world.service).pages:
        if page.method != "POST" or page.who in {"public", "token"}:
            continue
        path = re.sub(r"\{[^}]*\}", "some_id", page.path)
        answer = await stranger.post(path)
        assert answer.status_code == 303, path
        place = urlsplit(answer.headers["location"])
        (following,) = parse_qs(place.query)["next"]
        led = (place.path, path.startswith(following), following != "/")
        assert led == ("/sign-in", True, True), path
        assert (await visitor.get(following)).status_code != 405, path


async def test_the_answer_does_not_reveal_accounts(database_url, tmp_path):
    """Known, unknown, staff or limited: one answer, by the same statements."""
    async with (
        proxied(database_url) as (proxy, url),
        world_on(settings_for(url, tmp_path, POOL_SIZE="1"), tmp_path, follow=False) as world,
    ):
        await world.service.modes["live"].entities.add("Bakery", "known@example.com", None, STAFF)
        await world.service.staff.add("team@example.com", STAFF)
        answers, work, kinds = set(), set(), ("known", "unknown", "team")
        for number in range(8):
            for kind in kinds:
                visitor = Visitor(world, f"192.0.2.{number}")
                proxy.statements.clear()
                email = f"{kind}@example.com"
                answer = await visitor.post("/sign-in", email=email, next="/account")
                headers = {
                    name: value
                    for name, value in answer.headers.items()
                    if name not in {"x-request-id", "set-cookie"}
                }
                cookies = [re.sub("=[^;]{43};", "=;", one) for one in set_cookies(answer)]
                answers.add(
                    (
                        answer.status_code,
                        answer.text,
                        *cookies,
                        tuple(sorted(headers.items())),
                    )
                )
                if number:  # the first ones prepare statements
                    work.add(tuple(proxy.statements))
        assert len(answers) == 1
        assert len(work) == 1
        assert await count(world, "sign_in_links") == 5 * len(kinds)


async def test_nobody_uses_up_the_links_of_whoever_signed_in_before(world):
    """Strangers may ask until an address gets no more; a browser that was signed in by it gets one.

    It has as many as they have, and none of anybody else's.
    """
    visitor = Visitor(world)
    token = await asked(world, visitor)
    (known,) = [
        one
        for one in set_cookies(await visitor.post(f"/sign-in/{token}"))
        if one.startswith(f"{KNOWN_COOKIE}=")
    ]
    attributes = {part.strip().lower() for part in known.split(";")[1:]}
    assert {"httponly", "secure", "path=/", "samesite=lax"} < attributes
    visitor.client.cookies.delete(COOKIE)
    for number in range(2, ASKED_MAX + 4):
        await Visitor(world, f"192.0.2.{number}").post("/sign-in", email=EMAIL, next="")
    assert await count(world, "sign_in_links") == ASKED_MAX
    for _ in range(ASKED_MAX + 2):
        newest = await asked(world, visitor)
    assert await count(world, "sign_in_links") == 2 * ASKED_MAX
    assert (await visitor.post(f"/sign-in/{newest}")).status_code == 303
    visitor.client.cookies.delete(COOKIE)
    for _ in range(ASKED_MAX + 2):
        await asked(world, visitor, email="other@example.com")
    assert await count(world, "sign_in_links") == 3 * ASKED_MAX


async def test_a_network_is_limited(world):
    """Twenty attempts a minute, then a page says when to retry; others are unaffected."""
    visitor = Visitor(world, "192.0.2.1")
    for number in range(NETWORK_MAX):
        answer = await visitor.post("/sign-in", email=f"p{number}@example.com", next="/")
        assert answer.status_code == 303
    blocked = await visitor.post("/sign-in", email="more@example.com", next="/")
    assert (blocked.status_code, "rate_limited" in blocked.text) == (429, True)
    assert 1 <= int(blocked.headers["retry-after"]) <= 60
    assert await count(world, "sign_in_links") == NETWORK_MAX
    other = await Visitor(world, "192.0.2.2").post("/sign-in", email="more@example.com", next="/")
    assert other.status_code == 303


async def test_attempts_are_charged_before_anything_is_checked(world):
    """Whatever stands in the form: twenty a minute, then nothing of it is looked at."""
    visitor = Visitor(world, "192.0.2.1")
    for _ in range(NETWORK_MAX):
        assert (await visitor.post("/sign-in", email="nobody")).status_code == 400
    assert (await visitor.post("/sign-in", email="nobody")).status_code == 429


async def test_a_form_is_bounded_in_bytes(world):
    """What is over 16 KiB is refused unread, declared or not, by every form that anybody can send.

    Up to there a form is read.
    """

    async def sent(path, size):
        visitor = Visitor(world, f"192.0.2.{size % 250}")
        content = b"email=" + b"+" * (size - 6)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}

        async def pieces():
            yield content

        return [
            await visitor.client.post(path, content=one, headers=FROM_OUR_PAGE | kind)
            for one in (content, pieces())
        ]

    for path in ("/sign-in", "/sign-in/unknown", "/onboarding/unknown", "/sign-out"):
        for size in (FORM_BYTES_MAX + 1, 2**20):
            for answer in await sent(path, size):
                refused = (answer.status_code, "payload_too_large" in answer.text)
                assert refused == (413, True), (path, size)
        for answer in await sent(path, FORM_BYTES_MAX):
            assert answer.status_code in {303, 400}, path


async def test_guessed_links_are_charged(world):
    """Wrong tokens count, on GET and POST; a valid link works from the same network.

    They have an allowance of their own: whoever makes a network's browsers open such paths does not
    keep its people from asking for links.
    """
    visitor = Visitor(world, "192.0.2.1")
    token = await asked(world, visitor)
    for number in range(NETWORK_MAX // 2):
        assert (await visitor.get(f"/sign-in/guess-{number}")).status_code == 400
        assert (await visitor.post(f"/sign-in/guess-{number}")).status_code == 400
    assert (await visitor.get("/sign-in/guess")).status_code == 429
    assert (await visitor.post("/sign-in", email=EMAIL, next="/")).status_code == 303
    assert (await visitor.post(f"/sign-in/{token}")).status_code == 303


async def test_an_ipv6_network_is_limited_as_one(world):
    """A household's 64 bits share a limit; its neighbour is unaffected."""
    for number in range(NETWORK_MAX):
        visitor = Visitor(world, f"2001:db8:0:1::{number:x}")
        await visitor.post("/sign-in", email=f"p{number}@example.com", next="/")
    same, other = Visitor(world, "2001:db8:0:1:ffff::1"), Visitor(world, "2001:db8:0:2::1")
    assert (await same.post("/sign-in", email=EMAIL, next="/")).status_code == 429
    assert (await other.post("/sign-in", email=EMAIL, next="/")).status_code == 303


async def test_malformed_addresses_are_field_errors(world):
    """The form keeps its input; nothing is stored."""
    long = f"a{' ' * 9000}b@example.com"
    for email in ("", "nobody", "a b@example.com", "a@b@example.com", "a" * 300, long):
        answer = await Visitor(world).post("/sign-in", email=email, next="/account")
        assert answer.status_code == 400, email
        assert 'aria-invalid="true"' in answer.text
        assert f'value="{email}"' in answer.text
    assert await count(world, "sign_in_links") == 0


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


def visitor_with(world, cookies):
    """Return a visitor who sends exactly these cookies."""
    visitor = Visitor(world)
    visitor.client.headers["Cookie"] = cookies
    return visitor


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


async def test_opening_a_sign_in_link_does_not_use_it(world):
    """After a hundred GETs and HEADs the person's POST still signs in."""
    visitor, scanner = Visitor(world), Visitor(world, "192.0.2.7")
    token = await asked(world, visitor)
    for _ in range(50):
        assert (await scanner.get(f"/sign-in/{token}")).status_code == 200
        assert (await scanner.client.head(f"/sign-in/{token}")).status_code == 200
    assert await count(world, "sessions") == 0
    assert (await visitor.post(f"/sign-in/{token}")).status_code == 303


async def test_a_form_of_another_person_s_session_is_refused(world):
    """A form's token belongs to one session."""
    mine, other = await Visitor(world).sign_in(EMAIL), await Visitor(world).sign_in(EMAIL)
    form = {CSRF_FIELD: other.csrf}
    answer = await mine.client.post("/sign-out", data=form, headers=FROM_OUR_PAGE)
    assert answer.status_code == 403
    assert await is_signed_in(mine)


NO_FORMS = [
    (b'{"email": "person@example.com"}', "application/json"),
    (b"email=person%40example.com", "text/plain"),
    (b"email=%ff%fe", "application/x-www-form-urlencoded"),
    (b"email=a%00b@example.com", "application/x-www-form-urlencoded"),
    ("email=ü@example.com".encode(), "application/x-www-form-urlencoded"),
    (b"a=b&" * 300, "application/x-www-form-urlencoded"),
]


async def test_malformed_forms_are_refused(world):
    """Other types, undecodable bytes, NUL or too many fields get a page that says so."""
    for content, kind in NO_FORMS:
        headers = FROM_OUR_PAGE | {"Content-Type": kind}
        answer = await Visitor(world).client.post("/sign-in", content=content, headers=headers)
        assert answer.status_code == 400, content
        assert "<code>validation_failed</code>" in answer.text, content


async def test_refusals_name_code_status_and_request(world):
    """Each refusal page can be reported to the team."""
    answer = await Visitor(world).get("/sign-in/unknown")
    detail = re.search(r'<p class="detail">(.*?)</p>', answer.text)
    assert detail
    for part in ("400", "sign_in_link_invalid", answer.headers["x-request-id"]):
        assert part in detail[1]
