"""Signing in: how much a stranger may ask for, and what the answers tell them."""

import re
from datetime import timedelta

from service.core.clock import system_clock
from service.pages.visit import COOKIE, FORM_BYTES_MAX, KNOWN_COOKIE
from service.people.marks import mark_text
from service.people.sign_in import ASKED_MAX
from tests.database_proxy import proxied
from tests.pages.signing_in import EMAIL, asked, count, set_cookies
from tests.pages.visitor import FROM_OUR_PAGE, Visitor
from tests.world import STAFF, settings_for, world_on

NETWORK_MAX = 20


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


async def known_visitor(world):
    """Return a visitor in whose browser EMAIL has signed in, signed out again, and its mark."""
    visitor = Visitor(world, "192.0.2.1")
    assert (await visitor.post(f"/sign-in/{await asked(world, visitor)}")).status_code == 303
    visitor.client.cookies.delete(COOKIE)
    return visitor, visitor.client.cookies[KNOWN_COOKIE]


async def test_each_browser_has_a_mark_of_its_own(world):
    """Whoever signed in once by somebody's mail uses up none of the links of that person's own."""
    (thief, theirs), (owner, own) = [await known_visitor(world) for _ in range(2)]
    assert theirs != own
    for _ in range(ASKED_MAX + 2):
        await asked(world, thief)
    before = await count(world, "sign_in_links")
    for _ in range(ASKED_MAX + 2):
        await asked(world, owner)
    assert await count(world, "sign_in_links") == before + ASKED_MAX


async def test_a_mark_ends(world):
    """After half a year, or when its person signs out everywhere: then it is a stranger's."""
    visitor, first = await known_visitor(world)
    keys, now = await world.service.secrets.get(), system_clock()
    for number in range(2, ASKED_MAX + 2):
        await Visitor(world, f"192.0.2.{number}").post("/sign-in", email=EMAIL, next="")

    async def counts(mark):
        before = await count(world, "sign_in_links")
        visitor.client.cookies.delete(KNOWN_COOKIE)
        visitor.client.cookies.set(KNOWN_COOKIE, mark)
        await asked(world, visitor)
        return await count(world, "sign_in_links") > before

    def made(at, email=EMAIL):
        return mark_text(keys, keys.lookup_email(email), at)

    ages = (now - timedelta(days=179), now - timedelta(days=181))
    assert [await counts(made(at)) for at in ages] == [True, False]
    somebody = await Visitor(world).sign_in(EMAIL)
    await somebody.post("/security/sessions/end")
    assert await counts(first)
    await somebody.post("/account/sign-out")
    after = now + timedelta(minutes=1)
    assert [await counts(one) for one in (first, made(now), made(after))] == [False, False, True]
    assert not await counts(made(after, "other@example.com"))
    assert not await counts(made(after).swapcase())


async def test_a_neighbour_keeps_no_known_browser_out(world):
    """A mark of the address is charged in its network's place, and limited alike."""
    known, _ = await known_visitor(world)
    neighbour = Visitor(world, "192.0.2.1")
    while (await neighbour.post("/sign-in", email="x@example.com", next="")).status_code == 303:
        pass
    answers = [await known.post("/sign-in", email=EMAIL, next="") for _ in range(NETWORK_MAX + 1)]
    assert [one.status_code for one in answers] == [303] * NETWORK_MAX + [429]
    other = await known.post("/sign-in", email="other@example.com", next="")
    assert other.status_code == 429


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
