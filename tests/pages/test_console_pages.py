"""What the console's pages show of a partner's own: calls, keys, claims, links, usage."""

import asyncio
import csv
import html
import io
import re
from datetime import timedelta

import pytest
from litestar import Request

from service.core.clock import system_clock
from service.core.errors import Refusal, invalid
from service.facts.partners import ApiKeyIssued, partner_stream
from service.ledger.database import LedgerUnavailable
from service.pages.console import csv_file
from service.pages.console.csv_file import PAGES_MAX, ROWS_MAX, CsvFiles
from service.request_log.log import RequestLogEntry
from service.request_log.outcome import OUTCOME_BYTES_MAX, Outcome, outcome_of, read_outcome
from tests.pages.visitor import Visitor
from tests.world import STAFF, claim_body

DEVELOPER = "developer@example.com"


@pytest.fixture
async def developer(world):
    """Return a member of a partner's team, signed in, and the partner."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, DEVELOPER, STAFF)
    return await Visitor(world).sign_in(DEVELOPER), partner


async def shown(visitor, path, status=200):
    """Return a page's text without its tags."""
    answer = await visitor.get(path)
    assert answer.status_code == status, answer.text
    return text_of(answer.text)


def text_of(page):
    """Return what a page says."""
    bare = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", bare)))


async def test_a_filtered_page_of_calls_says_how_far_it_looked(world, developer, monkeypatch):
    """It leads on to older calls, where it found some as where it found none."""
    visitor, partner = developer
    now, log = system_clock(), world.observed.request_log
    for number, minutes in enumerate([1, 2, 3, 60, 61, 62]):
        code = "conflict" if minutes in {1, 62} else ""
        at = now - timedelta(minutes=minutes)
        log.add(
            "live",
            RequestLogEntry(
                *(f"req_{number}", partner.partner_id, "key_1", at),
                *("GET", "/v1/claims", 409 if code else 200, code, 1.0),
            ),
        )
    await log.flush()
    monkeypatch.setattr("service.request_log.reader.COUNTS_MAX", 2)
    path, query, texts = f"/console/{partner.partner_id}/requests", "?code=conflict", []
    while query:
        page = await visitor.get(f"{path}{html.unescape(query)}")
        texts.append(text_of(page.text))
        older = re.search(r'href="(\?[^"]*before=[^"]*)"', page.text)
        query = older and older[1]
    assert ["req_0" in one for one in texts] == [True, *[False] * (len(texts) - 1)]
    assert "Only calls since" in texts[0]
    assert all("There are older calls. Look further" in one for one in texts[1:-1])
    assert ("req_5" in texts[-1], "calls since" in texts[-1]) == (True, False)


async def test_a_call_says_what_was_wrong_and_what_a_repeat_met(world, developer):
    """Fields and messages of a 400, never a value; whether a repeat had the same body."""
    visitor, partner = developer
    entity_id = await partner.connected_entity()
    body = claim_body(entity_id, "case-1")
    wrong = body | {"partner_claim_id": 20260123, "invoices": [{"number": "secret-7\0"}]}
    calls = [
        await partner.call("POST", "/claims", json=one)
        for one in (wrong, body, body, body | {"message": "Another message."})
    ]
    assert [call.status_code for call in calls] == [400, 201, 200, 200]
    await world.observed.request_log.flush()
    path = f"/console/{partner.partner_id}/requests"
    refused, first, same, other = [
        await shown(visitor, f"{path}/{call.headers['x-request-id']}") for call in calls
    ]
    for name, messages in calls[0].json()["details"]["fieldErrors"].items():
        for message in (name, *messages):
            assert message in refused
    assert "20260123" not in refused
    assert "secret-7" not in refused
    assert "A repeat" not in first
    assert "with the same body" in same
    assert "with a different body" in other


def test_what_is_kept_of_a_refusal_is_bounded():
    """Whatever is wrong with a body; what is left out is counted, and a success keeps nothing."""
    refusal = Refusal(
        "validation_failed",
        field_errors={f"f{number}": ["ä" * 100] for number in range(99)},
        form_errors=["at most 100 faults are listed"],
    )
    stored = outcome_of({}, refusal.faults)
    assert stored is not None
    assert len(stored.encode()) <= OUTCOME_BYTES_MAX
    kept = read_outcome(stored)
    assert len(kept.fields) + len(kept.form) + kept.more == 100
    assert len(kept.fields) >= 3
    assert outcome_of({}, Refusal("entity_not_found").faults) is None
    assert outcome_of({}, None) is None
    assert read_outcome(outcome_of({}, invalid("limit", "too large").faults)).fields == {
        "limit": ["too large"]
    }
    replayed = {b"idempotent-replayed": b"true"}
    assert read_outcome(outcome_of(replayed, None)) == Outcome(replayed=True)
    assert read_outcome(None) == Outcome()


async def test_keys_have_names(world, developer):
    """A name is shown wherever its key is, goes on to the next one, and is encrypted in the log."""
    visitor, partner = developer
    path = f"/console/{partner.partner_id}/keys"

    async def issued(name):
        page = (await visitor.get(path)).text
        drawn = {
            field: re.search(rf'name="{field}" value="([^"]*)"', page)[1]
            for field in ("key_id", "proof")
        }
        return await visitor.post(path, mode="test", name=name, **drawn), drawn["key_id"]

    for name in ("x" * 61, "a\u202eb"):
        answer, _ = await issued(name)
        assert answer.status_code == 400
        assert 'aria-invalid="true"' in answer.text
    answer, key_id = await issued("Payroll server")
    assert answer.status_code == 200
    unnamed, _ = await issued("")
    assert unnamed.status_code == 200
    rolled = await visitor.post(f"{path}/{key_id}/roll", overlap="1h")
    assert rolled.status_code == 200
    listed = await shown(visitor, path)
    assert listed.count("Payroll server") == 2
    assert "Payroll server" in await shown(visitor, f"{path}/{key_id}/revoke")
    stored = await world.service.accounts.read(partner_stream(partner.partner_id))
    names = [one.event.name for one in stored if isinstance(one.event, ApiKeyIssued)]
    assert names == [None, None, "Payroll server", None, "Payroll server"]
    async with world.service.accounts.database.reads.connection() as connection:
        rows = await connection.fetch("select state from accounts.events")
    assert all(b"Payroll" not in row["state"] for row in rows)


async def test_claims_are_found(world, developer):
    """By stage, id, entity and reference; each order has every claim once, over its pages."""
    visitor, partner = developer
    entities = [await partner.connected_entity() for _ in range(2)]
    made = {
        reference: (await partner.claim(entity_id, reference)).json()["claim_id"]
        for entity_id, reference in (
            *((entities[0], f"case-{number:02}") for number in range(52)),
            (entities[1], "other"),
            (entities[1], "=1+2"),
        )
    }
    stranger = await world.partner()
    foreign = (await stranger.claim(await stranger.connected_entity(), "case-foreign")).json()
    await world.service.modes["live"].claims.move(made["other"], "settled", STAFF)
    path = f"/console/{partner.partner_id}/claims"

    async def found(query):
        references, following = [], f"{path}?{query}"
        while following:
            page = (await visitor.get(following)).text
            references += re.findall(r"</th><td>([^<]*)</td>", page)
            after = re.search(r'href="(\?[^"]*)" rel="next"', page)
            following = after and path + html.unescape(after[1])
        return references

    newest = list(reversed(made))
    assert await found("") == newest
    assert await found("sort=oldest") == newest[::-1]
    assert await found("sort=reference") == sorted(made)
    assert await found("stage=settled") == ["other"]
    assert await found("stage=settled&sort=oldest") == ["other"]
    assert await found("q=case-0") == [f"case-0{number}" for number in range(10)]
    assert await found("q=o&stage=settled") == ["other"]
    assert await found("q=o&stage=triage") == []
    assert await found(f"q={made['other']}") == ["other"]
    assert await found(f"q={made['other']}&stage=triage") == []
    assert await found(f"q={entities[1]}") == ["=1+2", "other"]
    assert await found(f"q={entities[1]}&sort=oldest&stage=settled") == ["other"]
    assert await found(f"q={foreign['claim_id']}") == []
    for wrong in ("stage=none", "sort=none", f"after={foreign['claim_id']}", "after=none"):
        await shown(visitor, f"{path}?{wrong}", 400)
    opened = await shown(visitor, f"{path}/{made['other']}")
    assert re.search("Created .* Moved to Settled", opened)
    assert "Personal" not in opened
    for other in (foreign["claim_id"], f"{made['other']}?mode=test"):
        await shown(visitor, f"{path}/{other}", 404)
    file = await visitor.get(f"{path}.csv?q=%3D")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.headers["content-disposition"] == 'attachment; filename="claims-live.csv"'
    assert '"\'=1+2"' in file.text
    assert len((await visitor.get(f"{path}.csv")).text.splitlines()) == 1 + len(made)
    overview = await shown(visitor, f"/console/{partner.partner_id}")
    assert "Triage 53 " in overview
    assert "Settled 1 " in overview
    assert "Only calls in test mode count here." in overview  # of live claims there are many


async def test_links_are_found(world, developer):
    """By state, id and user, in either order; a link's page says what happened to it."""
    visitor, partner = developer
    entity_id = await world.entity()
    links = [
        await partner.call("POST", "/connect-requests", json={"partner_user_id": user})
        for user in ("first", "second", "second", "=third")
    ]
    tokens = [link.json()["connect_url"].rpartition("/")[2] for link in links]
    connections = world.service.modes["live"].connections
    await connections.approve(tokens[0], entity_id, STAFF)
    await connections.decline(tokens[1], STAFF)
    path = f"/console/{partner.partner_id}/links"

    async def found(query):
        page = (await visitor.get(f"{path}?{query}")).text
        return re.findall(r"</a></th><td>([^<]*)</td>", page)

    assert await found("") == ["=third", "second", "second", "first"]
    assert await found("sort=oldest") == ["first", "second", "second", "=third"]
    assert await found("state=redeemed") == ["first"]
    assert await found("state=issued") == ["=third", "second"]
    assert await found("q=second&state=declined&sort=oldest") == ["second"]
    assert await found("state=expired") == []
    page = (await visitor.get(f"{path}?state=redeemed")).text
    link_id = re.search(r"lnk_\w+", page)[0]
    assert await found(f"q={link_id}") == ["first"]
    opened = await shown(visitor, f"{path}/{link_id}")
    assert "Approved by the customer" in opened
    assert entity_id not in opened
    await shown(visitor, f"{path}/{link_id}?mode=test", 404)
    rows = (await visitor.get(f"{path}.csv")).text.splitlines()
    assert [row.split(",")[1] for row in rows[1:]] == [
        '"\'=third"',
        '"second"',
        '"second"',
        '"first"',
    ]


async def test_onboardings_are_found(world, developer):
    """By state, id and the partner's own reference, in the sandbox of before a reset, too."""
    visitor, partner = developer

    async def started(mode, user):
        words = {"company_name": "Bakery", "user_email": f"{user.strip('=')}@example.com"}
        body = {"partner_user_id": user} | words
        answer = await partner.call("POST", "/onboardings", json=body, mode=mode)
        return answer.json()["onboarding_id"]

    made = [await started("live", user) for user in ("first", "second", "=third")]
    await started("test", "first")
    await world.service.partners.reset_sandbox(partner.partner_id, 1, STAFF)
    await started("test", "first")
    other = await world.partner()
    foreign = await other.call(
        "POST",
        "/onboardings",
        json={"partner_user_id": "x", "company_name": "X", "user_email": "x@example.com"},
    )
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        await connection.execute(
            "update live.onboardings set expires_at = now() where onboarding_id = $1", made[0]
        )
    path = f"/console/{partner.partner_id}/onboardings"

    async def found(query):
        page = (await visitor.get(f"{path}?{query}")).text
        return re.findall(r"</code></th><td>([^<]*)</td>", page)

    assert await found("") == ["=third", "second", "first"]
    assert await found("state=expired") == ["first"]
    assert await found("state=started") == ["=third", "second"]
    assert await found("q=second") == ["second"]
    assert await found("q=second&state=completed") == []
    assert await found(f"q={made[1]}") == ["second"]
    assert await found("q=first&mode=test") == ["first"] * 2
    assert await found(f"q={foreign.json()['onboarding_id']}") == []
    assert await found("q=x") == []
    assert "Nothing matches" in await shown(visitor, f"{path}?q=nobody")
    rows = list(csv.reader((await visitor.get(f"{path}.csv?state=started")).text.splitlines()))
    assert [row[1] for row in rows[1:]] == ["'=third", "second"]
    assert "entity_id" not in rows[0]


def file_of(pages, files=None, partner_id="ptn_1"):
    """Return a file of two columns whose pages a function returns."""
    return (files or CsvFiles()).file(partner_id, "x", ["a", "b"], pages)


async def read(file):
    """Return the rows of a file."""
    sent = b"".join([part async for part in file.iterator])
    return list(csv.reader(io.StringIO(sent.decode("utf-8-sig"), newline="")))


async def test_a_file_is_as_long_as_it_may_be():
    """Page after page, until it has all its rows; a separator within a cell ends none."""

    async def endless(limit, place):
        first = place or 0
        return [{"a": f"{first + one}", "b": "x"} for one in range(limit)], first + limit

    async def short(_limit, _place):
        return [{"a": "a;b", "b": 'c"d,e\nf'}], None

    head, *rows, last = await read(file_of(endless))
    assert (head, rows) == (["a", "b"], [[f"{nr}", "x"] for nr in range(ROWS_MAX)])
    assert last == ["This file ends here, but the list does not. Filter the list for the rest.", ""]
    assert await read(file_of(short)) == [["a", "b"], ["a;b", 'c"d,e\nf']]


async def test_a_file_that_finds_little_asks_little():
    """A rare filter over millions of rows ends after some pages, and the file says so."""
    asked = []

    async def rare(_limit, place):
        asked.append(place)
        return [{"a": "1", "b": "x"}] if len(asked) == 1 else [], len(asked)

    head, row, last = await read(file_of(rare))
    assert (head, row, len(last)) == (["a", "b"], ["1", "x"], 2)
    assert last[0].startswith("This file ends here")
    assert asked == [None, *range(1, PAGES_MAX)]


async def test_a_file_takes_little_of_the_database_s_time(monkeypatch):
    """Where reading took long, or fails, what is there is sent, and the last row says the rest."""
    asked = []

    async def slow(_limit, place):
        asked.append(place)
        return [{"a": "1", "b": "x"}], len(asked)

    async def failing(limit, place):
        if place:
            raise LedgerUnavailable
        return await slow(limit, place)

    for page, seconds, pages in ((slow, 0.0, 1), (failing, csv_file.SECONDS_MAX, 1)):
        monkeypatch.setattr(csv_file, "SECONDS_MAX", seconds)
        asked.clear()
        head, row, last = await read(file_of(page))
        assert (head, row, len(asked)) == (["a", "b"], ["1", "x"], pages)
        assert last[0].startswith("This file ends here")


async def test_a_partner_is_sent_one_file_at_a_time():
    """Another is refused until the first has ended, failed, or lost its reader."""
    files = CsvFiles()

    async def one(_limit, _place):
        return [], None

    async def broken(_limit, _place):
        raise ConnectionError

    first = file_of(one, files)
    with pytest.raises(Refusal, match="rate_limited"):
        file_of(one, files)
    file_of(one, files, "ptn_2")
    await read(first)
    failing = file_of(broken, files)
    with pytest.raises(ConnectionError):
        await read(failing)
    left = file_of(one, files).to_asgi_response(None, Request({"type": "http"}))
    reading = asyncio.Event()

    async def send(message):
        if message["type"] == "http.response.body":
            reading.set()
            await asyncio.Event().wait()  # a reader that takes nothing more

    async def receive():
        await reading.wait()
        with pytest.raises(Refusal, match="rate_limited"):
            file_of(one, files)
        return {"type": "http.disconnect"}

    await left({"type": "http"}, receive, send)
    file_of(one, files)
