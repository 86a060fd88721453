"""The lists of keys where rows were altered: which keys there are, and their state, are events'."""

from tests.pages.visitor import Visitor
from tests.world import STAFF


async def test_an_altered_row_hides_no_key_from_those_who_may_revoke_it(world, owner):
    """Neither by another partner's id or another key's, nor by an end that it does not have."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, "dev@example.com", STAFF)
    await world.service.staff.add("team@example.com", STAFF)
    path = f"/console/{partner.partner_id}/keys"
    developer, team = [
        await Visitor(world).sign_in(f"{who}@example.com") for who in ("dev", "team")
    ]
    key_ids = [token.split(".")[1] for token in partner.keys.values()]
    for change in ("revoked_at = issued_at", "partner_id = 'ptn_x'", "key_id = key_id || 'x'"):
        owner.execute(f"update accounts.api_keys set {change}")  # noqa: S608 - ours
        listed = (await developer.get(path)).text
        shown = (await team.get(f"/backoffice/partners/{partner.partner_id}")).text
        for key_id in key_ids:
            assert f"{path}/{key_id}/revoke" in listed
            assert (await developer.get(f"{path}/{key_id}/revoke")).status_code == 200
            assert key_id in shown
