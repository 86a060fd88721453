"""A rebuild and a rollback leave what is of other read models, and take nothing of a stranger's."""

from uuid import UUID

from service.facts.partners import partner_stream
from service.ledger.rebuild import build as building
from tests.ledger.raw_events import RawEvent, write_foreign
from tests.ledger.samples import CAUSE
from tests.projections.brittle_rebuilds import one

__all__ = ["one"]

A, B = UUID(int=1), UUID(int=2)
PARK = """
insert into {} (read_model, position, stream_id, error, parked_at)
select 'activity', position, stream_id, 'fault', now()
from unnest(%s::bigint[], %s::uuid[]) as one (position, stream_id)
"""
KEPT = """
insert into accounts.read_models (
    name, version, rebuilt_at, previous_version, previous_position
) values ('activity', 1, now(), 1, 1)
"""
OTHERS = """
select position::text from accounts.parked where read_model = 'activity'
union all
select name || previous_position from accounts.read_models where name = 'activity'
order by 1
"""

LACKED = """
select position from accounts.parked where read_model = 'brittle'
union all
select position from accounts_previous.brittle_parked
"""


async def test_what_is_parked_and_kept_of_others_stays(one, monkeypatch):
    """Whatever they have parked is in these rows, is not parked of these, and is not counted."""
    monkeypatch.setattr(building, "CLOSE_POSITIONS", 0)
    await one.append(A)
    await one.append(B)
    await one.follow()
    one.owner.execute(PARK.format("accounts.parked"), [[1, 9], [A, A]])
    one.owner.execute(KEPT)
    await one.rebuild()
    one.owner.execute(PARK.format("accounts_previous.brittle_parked"), [[2], [B]])
    await one.append(B, after=1)
    await one.follow()
    assert one.rows() == [1, 2, 3]
    await one.rollback()
    assert one.rows() == [1, 2, 3]
    assert one.owner.execute(OTHERS).fetchall() == [("1",), ("9",), ("activity1",)]
    assert one.owner.execute(LACKED).fetchall() == []
    assert (await one.verify()).parked == (0, 0)


async def test_what_another_wrote_is_compared_with_nothing_before_it_has_a_number(one):
    """Rows of an inline model do not have it, nor a replay, and it is not named as put aside."""
    partners = one.service.partners
    approved, pending = [
        await partners.add(name, f"{name}@example.com", CAUSE) for name in ("one", "two")
    ]
    await partners.approve(approved, CAUSE)
    query = "select state from accounts.events where topic = 'PartnerApproved'"
    (state,) = one.owner.execute(query).fetchone()
    await one.number()
    forged = state.replace(approved.encode(), pending.encode())
    stream = partner_stream(pending)
    await write_foreign(one.ledger, RawEvent(stream, 2, "PartnerApproved", forged))
    (one.model,) = [model for model in one.service.read_models if model.name == "partners"]
    assert one.owner.execute("select count(*) from accounts.pending").fetchone() == (1,)
    verified = await one.verify("inline")
    assert (verified.compared.total, list(verified.put_aside)) == (0, [])
