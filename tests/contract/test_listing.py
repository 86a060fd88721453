"""`GET /claims`: contract 2.7 and 4.5, and their readings."""

import asyncio

import pytest
import pytest_asyncio

from tests.contract.refusals import fields, refused
from tests.tables import every_row
from tests.world import STAFF

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBERS = [
    "claim_id",
    "entity_id",
    "partner_user_id",
    "partner_claim_id",
    "partner_invoice_ids",
    "name",
    "stage",
    "created_at",
    "entity_disconnected",
    "entity_disconnected_at",
]
"""What an item has by contract 2.7, in its order."""
OURS: list[str] = []
"""What it has beside: members that we added, after those of the contract."""


async def listed(partner, entity, **query):
    """Return the answer to a list request."""
    mode = query.pop("mode", "live")
    return await partner.call("GET", "/claims", mode=mode, params={"entity_id": entity} | query)


async def with_claims(shared, number, **more):
    """Return a partner, its entity, and the ids of its claims, newest first."""
    partner, entity = await shared.connected()
    claims = (partner.claim(entity, f"case-{nr}", **more) for nr in range(number))
    assert {answer.status_code for answer in await asyncio.gather(*claims)} <= {201}
    ids: list[str] = []
    token = {}
    while token is not None:
        page = (await listed(partner, entity, limit=200, **token)).json()
        ids += [one["claim_id"] for one in page["claims"]]
        token = {"page_token": page["next_page_token"]} if page["next_page_token"] else None
    return partner, entity, ids


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def big_list(shared):
    """Return a partner, its entity, and 240 claims, newest first."""
    return await with_claims(shared, 240)


async def test_items_and_envelope_have_the_fields_of_the_contract(shared):
    """Contract 2.7, and the members that we added."""
    partner, entity = await shared.connected()
    made = await partner.claim(entity, partner_user_id="u1", partner_invoice_ids=["b", "a", "b"])
    body = (await listed(partner, entity)).json()
    (item,) = body.pop("claims")

    assert body == {
        "next_page_token": None,
        "entity_disconnected": False,
        "entity_disconnected_at": None,
    }
    assert item.keys() == {*MEMBERS, *OURS}
    item = {name: item[name] for name in MEMBERS}
    created_at = item.pop("created_at")
    assert created_at[-5:-4] == "."
    assert created_at.endswith("Z")
    name = (
        await shared.service.modes["live"].connection_list.access(partner.partner_id, entity)
    ).name
    assert item == {
        "claim_id": made.json()["claim_id"],
        "entity_id": entity,
        "partner_user_id": "u1",
        "partner_claim_id": "case-1",
        "partner_invoice_ids": ["b", "a", "b"],
        "name": name,
        "stage": "triage",
        "entity_disconnected": False,
        "entity_disconnected_at": None,
    }


async def test_members_come_in_the_order_of_the_table(shared):
    """Answers can be compared with the contract line by line."""
    partner, entity, _ = await with_claims(shared, 1)
    body = (await listed(partner, entity)).json()

    envelope = ["claims", "next_page_token", "entity_disconnected", "entity_disconnected_at"]
    assert list(body) == envelope
    assert list(body["claims"][0]) == [*MEMBERS, *OURS], (
        "put a member of ours at the end of ClaimListItem, and its name into OURS here"
    )


async def test_omitted_fields_are_null_or_empty(shared):
    """Readings: partner_user_id is null; missing invoice references are an empty array."""
    partner, entity, _ = await with_claims(shared, 1)
    (item,) = (await listed(partner, entity)).json()["claims"]

    assert (item["partner_user_id"], item["partner_invoice_ids"]) == (None, [])


async def test_claims_are_listed_newest_first(shared):
    """Readings: by the ledger's order of appending."""
    partner, entity = await shared.connected()
    made = [(await partner.claim(entity, f"c{nr}")).json()["claim_id"] for nr in range(5)]
    body = (await listed(partner, entity)).json()

    assert [one["claim_id"] for one in body["claims"]] == made[::-1]


LIMITS = {
    None: 100,
    "1": 1,
    "200": 200,
    "201": 200,
    "+7": 7,
    "007": 7,
    "0": 1,
    "-0": 1,
    "-1": 1,
    "9" * 30: 200,
    "-" + "9" * 5000: 1,
}
NO_LIMITS = ("", "x", "1.0", "1e2", "0x10", "1_0", " 1", "\u0661", "null", "--1")


async def test_limits_are_clamped(big_list):
    """Contract 4.5: default 100, maximum 200, clamped; readings: at least 1."""
    partner, entity, ids = big_list
    with every_row() as row:
        for limit, size in LIMITS.items():
            query = {} if limit is None else {"limit": limit}
            with row(str(limit)[:10]):
                body = (await listed(partner, entity, **query)).json()
                assert [one["claim_id"] for one in body["claims"]] == ids[:size]
                assert body["next_page_token"] == ids[size - 1]


async def test_a_malformed_limit_is_refused(big_list):
    """Readings: validation_failed."""
    partner, entity, _ = big_list
    with every_row() as row:
        for limit in NO_LIMITS:
            with row(limit):
                assert fields(await listed(partner, entity, limit=limit)) == ["limit"]


async def test_pages_join_into_the_list(big_list):
    """Every claim once, in order; an exactly full last page has no next_page_token."""
    partner, entity, ids = big_list
    for limit in (1 + len(ids) // 2, len(ids) // 3, 100):
        found, token = [], {}
        while token is not None:
            body = (await listed(partner, entity, limit=limit, **token)).json()
            found += [one["claim_id"] for one in body["claims"]]
            after = body["next_page_token"]
            assert after is None or after == found[-1]
            token = None if after is None else {"page_token": after}
        assert found == ids


LONG = ["x" * 255] * 1_000
"""A quarter of what a page may have of them, and four times what a new claim may have."""


@pytest.mark.in_process("changes a limit")
async def test_a_page_is_bounded_in_bytes(shared, monkeypatch):
    """Claims of before the limit fill several pages, which join into the list."""
    monkeypatch.setattr("service.claims.decisions.PARTNER_INVOICE_IDS_BYTES_MAX", 2**20)
    partner, entity = await shared.connected()
    made = [
        (
            await partner.claim(entity, f"c{nr}", partner_user_id="u", partner_invoice_ids=LONG)
        ).json()
        for nr in range(6)
    ]
    monkeypatch.undo()
    newest = [one["claim_id"] for one in made[::-1]]
    for query in ({}, {"partner_user_id": "u"}):
        first = (await listed(partner, entity, **query)).json()
        assert [one["claim_id"] for one in first["claims"]] == newest[:4]
        assert first["next_page_token"] == newest[3]
        rest = (await listed(partner, entity, **query, page_token=newest[3])).json()
        assert [one["claim_id"] for one in rest["claims"]] == newest[4:]
        assert rest["next_page_token"] is None
    monkeypatch.setattr("projections.claim_list.reader.PAGE_BYTES_MAX", 1)
    alone = (await listed(partner, entity)).json()
    assert ([one["claim_id"] for one in alone["claims"]], alone["next_page_token"]) == (
        newest[:1],
        newest[0],
    )


@pytest.mark.in_process("changes a limit")
async def test_long_references_are_refused_in_new_claims_alone(shared, monkeypatch):
    """The field is named; the replay of a claim of before the limit matches as ever."""
    partner, entity = await shared.connected()
    refusal = await partner.claim(entity, "older", partner_invoice_ids=LONG)
    assert fields(refusal) == ["partner_invoice_ids"]
    with monkeypatch.context() as patch:
        patch.setattr("service.claims.decisions.PARTNER_INVOICE_IDS_BYTES_MAX", 2**20)
        made = await partner.claim(entity, "older", partner_invoice_ids=LONG)
    again = await partner.claim(entity, "older", partner_invoice_ids=LONG)
    assert (made.status_code, again.status_code) == (201, 200)
    assert again.headers["Idempotent-Payload-Match"] == "true"
    assert again.json()["claim_id"] == made.json()["claim_id"]


async def test_foreign_page_tokens_are_refused_alike(shared, big_list):
    """Tokens of another partner, entity, mode or filter, and unknown ones, look the same."""
    partner, entity, ids = big_list
    other, other_entity, other_ids = await with_claims(shared, 1)
    await other.connect(entity)
    second = await partner.connected_entity()
    elsewhere = (await partner.claim(second)).json()["claim_id"]
    sandbox = (await partner.sandbox()).connected_entity_id
    in_test = (await partner.claim(sandbox, mode="test")).json()["claim_id"]
    foreign = [other_ids[0], elsewhere, in_test, "clm_none", ids[0].upper(), ids[0] + " "]
    answers = [await listed(partner, entity, page_token=token) for token in foreign]
    answers.append(await listed(partner, entity, page_token=ids[0], partner_user_id="nobody"))
    answers.append(await listed(other, entity, page_token=ids[0]))
    answers.append(await listed(other, other_entity, page_token=ids[0]))
    answers.append(await listed(partner, sandbox, page_token=ids[0], mode="test"))

    assert {answer.text for answer in answers} == {answers[0].text}
    assert fields(answers[0]) == ["page_token"]
    assert fields(await listed(partner, entity, page_token="")) == ["page_token"]


async def test_the_list_can_be_filtered_by_user(shared):
    """Contract 4.5: partner_user_id, byte-exact, paged."""
    partner, entity = await shared.connected()
    users = ["a", "b", "a", "A", "a ", "a", ""]
    made = [
        (await partner.claim(entity, f"c{nr}", partner_user_id=user)).json()["claim_id"]
        for nr, user in enumerate(users)
    ]
    await partner.claim(entity, "without")
    mine = [made[5], made[2], made[0]]
    first = (await listed(partner, entity, partner_user_id="a", limit=2)).json()
    rest = (
        await listed(partner, entity, partner_user_id="a", page_token=first["next_page_token"])
    ).json()
    empty = (await listed(partner, entity, partner_user_id="")).json()
    none = (await listed(partner, entity, partner_user_id="zz")).json()

    assert [one["claim_id"] for one in first["claims"] + rest["claims"]] == mine
    assert (first["next_page_token"], rest["next_page_token"]) == (mine[1], None)
    whole = (await listed(partner, entity, page_token=mine[1])).json()
    assert [one["claim_id"] for one in whole["claims"]] == [made[1], made[0]]
    assert [one["claim_id"] for one in empty["claims"]] == [made[6]]
    assert (none["claims"], none["next_page_token"]) == ([], None)
    refused(
        await listed(partner, entity, partner_user_id="a", page_token=made[1]), "validation_failed"
    )


async def test_a_disconnected_entity_can_still_be_listed(shared):
    """Contract 3 and 4.5: both levels show since when; reconnection clears it."""
    partner, entity, ids = await with_claims(shared, 2)
    await partner.disconnect(entity)
    gone = (await listed(partner, entity)).json()
    await partner.connect(entity)
    back = (await listed(partner, entity)).json()

    at = gone["entity_disconnected_at"]
    assert at is not None
    for one in (gone, *gone["claims"]):
        assert (one["entity_disconnected"], one["entity_disconnected_at"]) == (True, at)
    for one in (back, *back["claims"]):
        assert (one["entity_disconnected"], one["entity_disconnected_at"]) == (False, None)
    assert [one["claim_id"] for one in gone["claims"]] == ids


async def test_the_list_has_only_the_partners_own_claims(shared):
    """Contract 4.5: lists only claims the partner originated."""
    one, entity, ids = await with_claims(shared, 1)
    two = await shared.partner()
    refused(await listed(two, entity), "entity_not_owned")
    await two.connect(entity)

    assert (await listed(two, entity)).json()["claims"] == []
    assert [c["claim_id"] for c in (await listed(one, entity)).json()["claims"]] == ids
    refused(await listed(one, "ent_none"), "entity_not_found")


async def test_the_list_shows_the_current_stage(shared):
    """Contract 2.7, stage."""
    partner, entity, ids = await with_claims(shared, 1)
    await shared.service.modes["live"].claims.move(ids[0], "negotiation", STAFF)

    assert (await listed(partner, entity)).json()["claims"][0]["stage"] == "negotiation"


async def test_paging_neither_skips_nor_repeats_while_claims_are_added(shared):
    """Claims that existed at the first page come once each, in order."""
    partner, entity, ids = await with_claims(shared, 60)
    done = asyncio.Event()

    async def write(writer: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            await partner.claim(entity, f"new-{writer}-{number}")

    async def read() -> list[str]:
        found, token = [], {}
        while token is not None:
            body = (await listed(partner, entity, limit=7, **token)).json()
            found += [one["claim_id"] for one in body["claims"]]
            after = body["next_page_token"]
            token = None if after is None else {"page_token": after}
            await asyncio.sleep(0.002)
        return found

    writers = [asyncio.create_task(write(writer)) for writer in range(3)]
    walks = [await read() for _ in range(5)]
    done.set()
    await asyncio.gather(*writers)

    for walk in walks:
        assert len(walk) == len(set(walk))
        assert [one for one in walk if one in set(ids)] == ids
    assert len(walks[-1]) > len(ids)


BAD_QUERIES = {
    "": ["entity_id"],
    "entity_id=": ["entity_id"],
    "entity_id=%00": ["entity_id"],
    "entity_id=%ff": ["entity_id"],
    "entity_id=%ED%A0%80": ["entity_id"],
    "entity_id=a&entity_id=b": ["entity_id"],
    "entity_id=" + "a" * 256: ["entity_id"],
    "limit=x&partner_user_id=%00": ["entity_id", "limit", "partner_user_id"],
    "entity_id=a&limit=1&limit=2": ["limit"],
    "entity_id=a&page_token=%00": ["page_token"],
}


async def test_a_bad_query_names_its_parameters(shared):
    """Readings: fieldErrors are keyed by query parameters and list every fault."""
    partner = await shared.partner()
    with every_row() as row:
        for query, named in BAD_QUERIES.items():
            with row(query[:40]):
                assert sorted(fields(await partner.call("GET", f"/claims?{query}"))) == named


async def test_a_query_is_read_as_browsers_write_it(shared):
    """Unknown parameters and stray separators are ignored; a bad escape is taken literally."""
    partner = await shared.partner()
    for query in ("entity_id=a&x=%zz", "&&entity_id=a&", "entity_id=%a", "entity_id=%"):
        refused(await partner.call("GET", f"/claims?{query}"), "entity_not_found")
