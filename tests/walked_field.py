"""What `tests/test_small_changes.py` runs on a changed copy of the tree: a claim's new field.

It is posted, listed, shown and replayed, and the team opens the pages of two claims, one with the
field, one without.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from service.evidence.replay.comparison import independent_claims
from service.evidence.replay.moment import moment_of
from service.evidence.replay.state import replayed
from service.evidence.replay.wanted import EVERYTHING
from tests.databases import migrated
from tests.numbering import number
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
        ledger = world.service.modes["live"].ledger
        await number(ledger)
        position = (await moment_of(ledger)).position
        theirs = await independent_claims(ledger.database, position, EVERYTHING, _nothing)
        async with replayed(ledger, position, _nothing) as ours:
            replay = [one async for one in ours.rows("claim_list")]
        await world.service.staff.add(TEAM, STAFF)
        team = await Visitor(world).sign_in(TEAM)
        pages = [await team.get(f"/backoffice/claims/{claim_id}") for claim_id in ids]
        return {
            "listed": {one["claim_id"]: one["currency"] for one in listed.json()["claims"]},
            "alone": {one.json()["claim_id"]: one.json()["currency"] for one in alone},
            "expected": dict(zip(ids, ("EUR", None), strict=True)),
            "replayed": {one["claim_id"]: one["currency"] for one in replay},
            "independent": {one["claim_id"]: one["currency"] for one in theirs.values()},
            "pages": [one.status_code for one in pages],
        }


def _nothing(_steps: int) -> None:
    """Show no progress."""


if __name__ == "__main__":
    migrated(sys.argv[1])
    json.dump(asyncio.run(walk(sys.argv[1], Path(sys.argv[2]))), sys.stdout)
