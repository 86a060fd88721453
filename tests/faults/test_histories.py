"""The checker of histories: it takes every right one, and finds what is wrong in seeded others."""

import asyncio
from itertools import count

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.histories import (
    History,
    Operation,
    RecordingTransport,
    faults,
    from_lines,
    to_lines,
)

PLACE = {"partner": "pk_live_ptn_1", "entity": "ent_1"}
PAGE = 2
steady = settings(deadline=None, suppress_health_check=list(HealthCheck))

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["create"] * 6 + ["list"] * 3 + ["disconnect", "connect"]),
        st.integers(0, 5),
        st.floats(0.1, 4),
        st.floats(0.1, 4),
        st.sampled_from(["answered"] * 5 + ["lost", "never"]),
    ),
    min_size=1,
    max_size=40,
)
"""What is done, with which key, how long before and after its effect it began and ended, and
whether its answer was lost, or the operation itself."""


def history_of(actions):
    """Return what clients see of operations that each take effect at one moment, in this order."""
    claims, connected, history, numbers = {}, True, [], count(1)
    for moment, (action, key, before, after, outcome) in enumerate(actions):
        times = {"start": moment - before, "end": moment + after}
        name = {"create": "create_claim", "list": "list_claims"}.get(action, action)
        one = Operation(op=name, **PLACE, **times)
        if action == "list":
            history.extend(_pages(list(claims.values())[::-1], times))
            continue
        if action == "create":
            one.key = f"case-{key}"
        if outcome == "never":
            one.end = None
        elif action == "create" and not connected:
            one.status = 403
        elif action == "create":
            one.already_existed = one.key in claims
            one.claim_id = claims.setdefault(one.key, f"clm_{next(numbers)}")
            one.status = 200 if one.already_existed else 201
        else:
            connected, one.status = action == "connect", 200
        if outcome == "lost":
            one.end = one.status = one.claim_id = one.already_existed = None
        history.append(one)
    return history


def _pages(newest_first, times):
    """Yield the pages of a list; they have what there was when the first was read."""
    token, end = None, times["end"]
    while True:
        rest = newest_first if token is None else newest_first[newest_first.index(token) + 1 :]
        page = Operation(op="list_claims", **PLACE, start=times["start"], end=end, status=200)
        page.page, page.claims = token, rest[:PAGE]
        page.next_page = token = page.claims[-1] if len(rest) > PAGE else None
        yield page
        if token is None:
            return
        times, end = {"start": end + 0.01}, end + 0.02


def one_of(history, data, condition):
    """Return some operation of a history with a property."""
    found = [one for one in history if condition(one)]
    assume(found)
    return data.draw(st.sampled_from(found))


@steady
@given(ACTIONS)
def test_a_right_history_has_no_fault(actions):
    """However operations overlap, and whichever answers are lost."""
    assert faults(history_of(actions)) == []


@steady
@given(ACTIONS)
def test_a_history_is_kept_as_lines(actions):
    """It is read back as it was."""
    history = history_of(actions)
    assert from_lines(to_lines(history)) == history


@steady
@given(ACTIONS, st.data())
def test_a_second_claim_of_a_key_is_found(actions, data):
    """Another 201, with the same id or another one."""
    history = history_of(actions)
    made = one_of(history, data, lambda one: one.status == 201)
    claim_id = data.draw(st.sampled_from([made.claim_id, "clm_other"]))
    history.append(msgspec.structs.replace(made, claim_id=claim_id))
    assert faults(history)


@steady
@given(ACTIONS, st.data())
def test_another_id_on_a_replay_is_found(actions, data):
    """The id stays what it was in the first answer."""
    history = history_of(actions)
    made = one_of(history, data, lambda one: one.claim_id is not None)
    replay = {"status": 200, "already_existed": True, "claim_id": "clm_other"}
    history.append(msgspec.structs.replace(made, **replay))
    assert faults(history)


@steady
@given(ACTIONS, st.data())
def test_a_claim_that_is_accepted_after_the_end_is_found(actions, data):
    """It began after the disconnection was acknowledged, with no reconnection about."""
    history = history_of(actions)
    gone = one_of(history, data, lambda one: one.op == "disconnect" and one.status == 200)
    start = gone.end + 0.001
    backs = (one for one in history if one.op == "connect")
    assume(all(back.start > start + 0.002 or (back.end or 99) < gone.start for back in backs))
    late = {"status": 201, "key": "late", "claim_id": "clm_late", "already_existed": False}
    history.append(Operation(op="create_claim", **PLACE, start=start, end=start + 0.001, **late))
    assert any("was accepted" in fault for fault in faults(history))


@steady
@given(ACTIONS, st.data())
def test_a_claim_that_a_list_lacks_is_found(actions, data):
    """On whichever page it was, and after whichever acknowledgement."""
    history = [*history_of(actions), *_pages_at_the_end(actions)]
    made = one_of(history, data, lambda one: one.claim_id is not None)
    lacking = [page for page in history if page.claims and made.claim_id in page.claims]
    for page in lacking:
        page.claims = [one for one in page.claims if one != made.claim_id]
    assert any("lacks" in fault for fault in faults(history))


def _pages_at_the_end(actions):
    claims = {one.key: one.claim_id for one in history_of(actions) if one.claim_id}
    ids = sorted(claims.values(), key=lambda one: -int(one.removeprefix("clm_")))
    return _pages(ids, {"start": 99.0, "end": 101.0})


def test_a_first_page_alone_has_what_is_newer_than_what_it_has():
    """Without the pages that follow it, a list may lack older claims, and no newer one."""
    first, second, third = (
        Operation(
            op="create_claim",
            **PLACE,
            key=f"case-{n}",
            claim_id=f"clm_{n}",
            status=201,
            already_existed=False,
            start=n,
            end=n + 0.5,
        )
        for n in (1, 2, 3)
    )
    page = Operation(op="list_claims", **PLACE, start=5, end=6, status=200, next_page="clm_2")
    page.claims = ["clm_3", "clm_2"]
    assert faults([first, second, third, page]) == []
    page.claims = ["clm_2"]
    assert faults([first, second, third, page]) == [
        "case-3 was acknowledged, and a later list lacks clm_3"
    ]


def test_a_claim_listed_twice_is_found():
    """On one page, or on two of a list."""
    pages = [
        Operation(op="list_claims", **PLACE, start=1, end=2, status=200, claims=["a", "b"]),
        Operation(op="list_claims", **PLACE, start=3, end=4, status=200, claims=["b"], page="b"),
    ]
    pages[0].next_page = "b"
    assert faults(pages) == ["a claim was listed twice"]


@pytest.mark.parametrize("change", [{"already_existed": True}, {"status": 200}])
def test_an_answer_that_contradicts_itself_is_found(change):
    """201 is new, and 200 is a replay."""
    made = {"key": "k", "claim_id": "c", "status": 201, "already_existed": False}
    one = Operation(op="create_claim", **PLACE, start=1, end=2, **(made | change))
    assert len(faults([one])) == 1


def test_requests_are_recorded_as_they_are_answered():
    """Claims and pages, and a request without an answer."""
    history, answers = (
        History(),
        iter(
            [
                httpx.Response(201, json={"claim_id": "clm_1", "already_existed": False}),
                httpx.Response(
                    200, json={"claims": [{"claim_id": "clm_1"}], "next_page_token": "clm_1"}
                ),
                httpx.Response(503, json={}),
                httpx.Response(404, json={}),
            ]
        ),
    )

    async def calls():
        transport = RecordingTransport(httpx.MockTransport(lambda _: next(answers)), history)
        headers = {"Authorization": "Bearer pk_live_ptn_1.key.secret"}
        async with httpx.AsyncClient(
            transport=transport, base_url="https://api.example.com/v1", headers=headers
        ) as client:
            body = {"entity_id": "ent_1", "partner_claim_id": "case-1"}
            await client.post("/claims", json=body)
            await client.get("/claims", params={"entity_id": "ent_1", "page_token": "clm_0"})
            await client.post("/claims", json=body)
            await client.post("/onboardings", json={})

    asyncio.run(calls())
    made, listed, failed = history.operations
    assert (made.key, made.status, made.claim_id) == ("case-1", 201, "clm_1")
    assert (listed.page, listed.claims, listed.next_page) == ("clm_0", ["clm_1"], "clm_1")
    assert (failed.status, failed.claim_id) == (503, None)
    assert {one.place for one in history.operations} == {("pk_live_ptn_1", "ent_1")}
    assert all(one.end is not None and one.start <= one.end for one in history.operations)
