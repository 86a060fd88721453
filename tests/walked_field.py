"""What `tests/test_small_changes.py` runs on a changed copy of the tree: a claim's new field.

It is posted, listed and shown, and the pages of a claim with it and of one without are opened.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.databases import migrated
from tests.pages.visitor import Visitor
from tests.world import STAFF, TEAM, settings_for, world_on


async def walk(database_url: str, mail_dir: Path) -> dict[str, Any]:
    """Create a claim with the new field and one without; return what is shown of each."""
    async with world_on(settings_for(database_url, mail_dir), mail_dir, follow=False) as world:
        partner, entity_id = await world.connected()
        ids: list[str] = []
        for reference, more in (("case-1", {"currency": "EUR"}), ("case-2", {})):
            answer = await partner.claim(entity_id, reference, **more)
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["claim_id"])
        again = await partner.claim(entity_id, "case-1", currency="GBP")
        assert again.headers["Idempotent-Payload-Match"] == "false"
        listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
        alone = [await partner.call("GET", f"/claims/{claim_id}") for claim_id in ids]
        await world.service.staff.add(TEAM, STAFF)
        team = await Visitor(world).sign_in(TEAM)
        pages = [await team.get(f"/backoffice/claims/{claim_id}") for claim_id in ids]
        return {
            "listed": {one["claim_id"]: one["currency"] for one in listed.json()["claims"]},
            "alone": {one.json()["claim_id"]: one.json()["currency"] for one in alone},
            "expected": dict(zip(ids, ("EUR", None), strict=True)),
            "pages": [one.status_code for one in pages],
        }


if __name__ == "__main__":
    migrated(sys.argv[1])
    json.dump(asyncio.run(walk(sys.argv[1], Path(sys.argv[2]))), sys.stdout)
