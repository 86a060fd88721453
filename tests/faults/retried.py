"""A partner that goes on after an outage."""

import httpx

from tests.patience import eventually
from tests.world import Partner


async def until_created(partner: Partner, entity_id: str, reference: str) -> httpx.Response:
    """Retry a claim, as a partner does, until it is no 503; return that answer."""

    async def answered() -> httpx.Response | None:
        answer = await partner.claim(entity_id, reference)
        return answer if answer.status_code != 503 else None

    return await eventually(answered, look=0.1)
