"""Reading a partner's events as a client does: with the cursor of the answer before."""

from typing import Any

from tests.patience import eventually
from tests.world import Partner


async def events(partner: Partner, after: str | None = None, **query: Any) -> dict[str, Any]:
    """Return an answer of `GET /events`."""
    mode = query.pop("mode", "live")
    params = query | ({} if after is None else {"after": after})
    answer = await partner.call("GET", "/events", mode=mode, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def followed(partner: Partner, number: int, **query: Any) -> list[dict[str, Any]]:
    """Return a partner's first events, once there are so many."""
    found: list[dict[str, Any]] = []
    after = None

    async def enough() -> bool:
        nonlocal after
        page = await events(partner, after, **query)
        found.extend(page["events"])
        after = page["next_cursor"]
        return len(found) >= number

    await eventually(enough)
    return found
