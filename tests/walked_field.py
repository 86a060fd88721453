"""What `tests/test_small_changes.py` runs on a changed copy of the tree: POST a claim, GET it."""

import asyncio
import json
import sys
from pathlib import Path

from tests.databases import migrated
from tests.world import settings_for, world_on


async def walk(database_url: str, mail_dir: Path) -> list[object]:
    """Create a claim with the new field and one without; return what the list shows of it."""
    async with world_on(settings_for(database_url, mail_dir), mail_dir) as world:
        partner, entity_id = await world.connected()
        for reference, more in (("case-1", {"currency": "EUR"}), ("case-2", {})):
            answer = await partner.claim(entity_id, reference, **more)
            assert answer.status_code == 201, answer.text
        again = await partner.claim(entity_id, "case-1", currency="GBP")
        assert again.headers["Idempotent-Payload-Match"] == "false"
        listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
        return [claim["currency"] for claim in listed.json()["claims"]]


if __name__ == "__main__":
    migrated(sys.argv[1])
    json.dump(asyncio.run(walk(sys.argv[1], Path(sys.argv[2]))), sys.stdout)
