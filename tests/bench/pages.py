"""Every page that reads lists, with a year of data for the largest partner (design: 200 ms)."""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import httpx

from service.app.bootstrap import Service
from service.app.settings import SERVE, Settings
from service.pages.visit import COOKIE
from tests.bench.stack import CAUSE, Stack
from tests.no_tls import NO_TLS
from tests.sessions import session_of
from tests.world import claim_body

GOAL_MS = 200
VISITS = 30
OWNER, DEVELOPER, STAFF = "b0@example.com", "developer@example.com", "team@example.com"
LINKS = 100_000
EVENTS = 200_000

# Straight into the read models and the notes of calls, which is all that these pages read. Every
# second claim is of the business whose owner looks, the others are of a thousand other businesses.
_FILL = (
    """
    insert into live.claim_list (claim_id, append_id, stream_id, partner_id, entity_id,
        partner_claim_id, partner_user_id, partner_invoice_ids, stage, created_at)
    select 'clm_' || lpad(n::text, 26, '0'), n, gen_random_uuid(), '{partner}',
        case when n % 2 = 0 then '{entity}' else 'ent_x' || lpad((n % 1000)::text, 25, '0') end,
        'case-' || n, 'user-' || n % 5000, '["inv-1"]', 'triage', now() - n * interval '30 seconds'
    from generate_series(1, {claims}) as n
    """,
    # All within the thirty days that are kept, by fifty keys: more than a year of 10 million leaves
    # there. The real claim's call is noted meanwhile, perhaps: hence `do nothing`.
    """
    insert into live.requests (request_id, partner_id, key_id, at, method, route, status, code,
        duration_ms)
    select 'req_' || lpad(n::text, 26, '0'), '{partner}',
        'key_' || lpad((1 + n % 50)::text, 26, '0'),
        now() - interval '30 days' * (n / {requests}::float8),
        case n % 3 when 0 then 'GET' else 'POST' end,
        case n % 3 when 0 then '/v1/claims' when 1 then '/v1/claims' else '/v1/onboardings' end,
        case when n % 20 = 7 then 400 when n % 1000 = 9 then 409 when n % 500000 = 11 then 503
            else 200 end,
        case when n % 20 = 7 then 'validation_failed' when n % 1000 = 9 then 'claim_conflict'
            when n % 500000 = 11 then 'service_unavailable' else '' end,
        3.5 + n % 40
    from generate_series(1, {requests}) as n
    """,
    """
    insert into live.request_counts (partner_id, minute, status, code, method, route, key_id,
        requests)
    select partner_id, date_trunc('minute', at), status, code, method, route, key_id, count(*)
    from live.requests group by 1, 2, 3, 4, 5, 6, 7 on conflict do nothing
    """,
    """
    insert into live.request_hours (partner_id, hour, method, route, requests, limited, refused)
    select partner_id, date_trunc('hour', at, 'UTC'), method, route, count(*),
        count(*) filter (where status = 429),
        count(*) filter (where status >= 400 and status <> 429)
    from live.requests group by 1, 2, 3, 4 on conflict do nothing
    """,
    """
    insert into live.request_days (partner_id, day, status, code, method, route, key_id,
        requests, first_at, last_at)
    select partner_id, (at at time zone 'UTC')::date, status, code, method, route,
        key_id, count(*), min(at), max(at)
    from live.requests group by 1, 2, 3, 4, 5, 6, 7 on conflict do nothing
    """,
    """
    insert into live.connect_links (link_id, stream_id, token_hash, partner_id, state, issued_at,
        expires_at, partner_user_id)
    select 'lnk_' || lpad((n + 1000000)::text, 26, '0'), gen_random_uuid(),
        sha256(int8send(n)), '{partner}', 'issued', now() - n * interval '5 minutes',
        now() + interval '1 hour' - n * interval '5 minutes', 'user-' || n
    from generate_series(1, {links}) as n
    """,
    """
    insert into live.onboardings (onboarding_id, stream_id, partner_id, partner_user_id, entity_id,
        state, started_at)
    select 'onb_' || lpad((n + 1000000)::text, 26, '0'), gen_random_uuid(), '{partner}',
        'user-' || n, 'ent_x' || lpad(n::text, 25, '0'), 'started', now() - n * interval '5 minutes'
    from generate_series(1, {links}) as n
    """,
    # What happened, for the timelines: one claim's event over and over, in the log and in the index
    # of the partner and the business, and behind everything that follows the log, which would take
    # it for news. One transaction.
    """
    insert into live.events (originator_id, originator_version, topic, state)
    select gen_random_uuid(), 1, one.topic, one.state
    from (select topic, state from live.events where topic = 'ClaimCreated' limit 1) as one,
        generate_series(1, {events});
    insert into live.log (position, append_id, leaf_hash)
    select last.position + e.append_id - last.append_id, e.append_id, sha256('')
    from live.events as e,
        (select position, append_id from live.log order by position desc limit 1) as last
    where e.append_id > last.append_id;
    update live.subscriptions set position = last.position, leaf_hash = last.leaf_hash
    from (select position, leaf_hash from live.log order by position desc limit 1) as last;
    insert into live.activity (subject, position, topic, at, actor, request_id)
    select subject, l.position, 'ClaimCreated', now(), 'partner:{partner}', 'req_filled'
    from live.log as l, unnest(array['{partner}', '{entity}']) as subject
    where l.leaf_hash = sha256('')
    """,
    "vacuum analyze",
)


def pages(stack: Stack, claims: int, requests: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Fill the database, then visit each page in turn, one visitor at a time."""
    url = stack.clone("pages")
    names = {
        "partner": f"ptn_{1:026}",
        "entity": stack.customers[0].entity_id,
        "key": f"key_{1:026}",
        "request": f"req_{requests // 2:026}",
        "old": f"clm_{claims // 2:026}",
        "link": f"lnk_{1_000_001:026}",
    }
    with stack.service("pages", 1) as served:
        origin = f"http://127.0.0.1:{served.port}"
        names["claim"] = _real_claim(origin, stack)
        _wait_until_numbered(stack, url)
        sessions = asyncio.run(_sessions(stack, url, names["partner"]))
        for statement in _FILL:
            say(f"pages: {' '.join(statement.split())[:60]}")
            sizes = {"claims": claims, "requests": requests, "links": LINKS, "events": EVENTS}
            stack.execute(url, statement.format(**sizes, **names))
        figures = {
            path: _visited(origin, path.format(**names), sessions[who], say)
            for who, paths in PATHS.items()
            for path in paths
        }
    slowest = max(figures, key=lambda path: figures[path]["max_ms"])
    return {
        "goal_ms": GOAL_MS,
        "claims": claims,
        "requests": requests,
        "slowest": slowest,
        "slowest_max_ms": figures[slowest]["max_ms"],
        "pages": figures,
    }


_CONSOLE = "/console/{partner}"
_CALLS = f"{_CONSOLE}/requests?mode=live"
PATHS = {
    OWNER: (
        "/account",
        "/account/{entity}/{partner}",
        "/account/{entity}/{partner}?from={old}",
        "/account/{entity}/{partner}/claims/{claim}",
        "/account/{entity}/{partner}/disconnect",
        "/connected/{entity}/{partner}",
    ),
    DEVELOPER: (
        "/console/partners",
        _CONSOLE,
        f"{_CONSOLE}/keys",
        f"{_CONSOLE}/settings",
        f"{_CONSOLE}/team",
        _CALLS,
        f"{_CALLS}&class=4",
        f"{_CALLS}&class=5",
        f"{_CALLS}&code=service_unavailable",
        f"{_CALLS}&code=validation_failed",
        f"{_CALLS}&key={{key}}",
        f"{_CALLS}&endpoint=POST+/v1/onboardings",
        f"{_CALLS}&code=none_such",
        f"{_CONSOLE}/requests/{{request}}?mode=live",
        f"{_CONSOLE}/errors?mode=live",
        *(f"{_CONSOLE}/usage?span={span}" for span in ("hour", "day", "week", "month")),
        f"{_CONSOLE}/claims?mode=live",
        f"{_CONSOLE}/claims?mode=live&stage=triage&sort=oldest",
        f"{_CONSOLE}/claims?mode=live&sort=reference&stage=closed",
        f"{_CONSOLE}/claims?mode=live&q=case-1",
        f"{_CONSOLE}/claims/{{claim}}?mode=live",
        f"{_CONSOLE}/links?mode=live",
        f"{_CONSOLE}/links?mode=live&state=expired",
        f"{_CONSOLE}/links?mode=live&q=user-7",
        f"{_CONSOLE}/links/{{link}}?mode=live",
        f"{_CONSOLE}/onboardings?mode=live",
        f"{_CONSOLE}/onboardings?mode=live&state=completed",
        f"{_CONSOLE}/onboardings?mode=live&q=user-7",
        f"{_CONSOLE}/webhooks",
        f"{_CONSOLE}/sandbox",
        f"{_CONSOLE}/checklist",
        f"{_CONSOLE}/tutorial",
    ),
    STAFF: (
        "/backoffice",
        "/backoffice/partners",
        "/backoffice/partners?state=approved",
        "/backoffice/partners/{partner}",
        "/backoffice/entities/{entity}",
        "/backoffice/claims/{claim}",
        "/backoffice/timeline/{entity}",
        "/backoffice/timeline/{entity}?before=.100000.",
        "/backoffice/timeline/{partner}",
        "/backoffice/timeline/{partner}?kind=ClaimStageChanged",
        "/backoffice/timeline/{entity}?by=staff&ledger=live",
        "/backoffice/timeline/{claim}",
        "/backoffice/people",
        "/backoffice/mails",
        "/backoffice/health",
    ),
}
"""What is visited, by who does; names in braces are those of the filled data."""


def _visited(
    origin: str, path: str, session: str, say: Callable[[str], None]
) -> dict[str, float | int]:
    headers = {"Cookie": f"{COOKIE}={session}"}
    times: list[float] = []
    with httpx.Client(base_url=origin, headers=headers, timeout=60, verify=NO_TLS) as client:
        for number in range(VISITS + 1):
            begun = time.perf_counter()
            answer = client.get(path)
            if answer.status_code != 200 or "<h1" not in answer.text:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:200]}")
            if number:  # the first opens the connection
                times.append((time.perf_counter() - begun) * 1000)
    figures = {
        "p50_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "bytes": len(answer.content),
    }
    say(f"pages: {path}: {figures}")
    return figures


def _real_claim(origin: str, stack: Stack) -> str:
    """Create a claim through the API, because the back office reads it from its stream."""
    customer = stack.customers[0]
    answer = httpx.post(
        f"{origin}/v1/claims",
        json=claim_body(customer.entity_id, "case-real"),
        headers={"Authorization": f"Bearer {customer.token}"},
        verify=NO_TLS,
    )
    return answer.raise_for_status().json()["claim_id"]


def _wait_until_numbered(stack: Stack, url: str) -> None:
    """Wait until all events are numbered, so that the filled-in ones come last."""
    while stack.execute(url, "select from live.pending limit 1"):
        time.sleep(0.05)


async def _sessions(stack: Stack, url: str, partner_id: str) -> dict[str, str]:
    """Return a session of each visitor, after making them members and staff."""
    settings = Settings.from_environment(stack.environment(url), require=SERVE)
    service = Service(settings)
    async with service.opened():
        await service.partners.add_member(partner_id, DEVELOPER, CAUSE)
        await service.staff.add(STAFF, CAUSE)
        begun = {email: await session_of(service, email) for email in PATHS}
    return {email: session.token for email, session in begun.items()}
