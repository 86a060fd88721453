"""Which events are ours: of a page as of each alone, under generated keys and boundaries."""

from typing import NamedTuple
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from service.ledger.binding import (
    BOUND_TOPIC,
    Binding,
    Boundary,
    binding_of,
    boundary_stream,
)
from service.ledger.decoding import StoredEvent
from service.ledger.event_macs import MAC_BYTES, UNBOUND, EventKeys

KEYS = {number: bytes([number]) * 32 for number in range(1, 5)}
OTHER = EventKeys(dict.fromkeys(range(1, 8), b"other" * 7), since_start=False, signing=1)
PLACES = 40


class Bound(NamedTuple):
    """A row of `EventsBound`, read by place and by name as the driver's."""

    position: int
    version: int
    topic: str
    state: bytes
    mac: bytes

    def __getitem__(self, name):
        """Return a column by its name."""
        return getattr(self, name)


@st.composite
def bindings(draw):
    """Draw keys, one that signs, and the boundaries that retired some, if any."""
    newest = draw(st.integers(1, len(KEYS)))
    keys = {number: KEYS[number] for number in range(1, newest + 1)}
    retiring = sorted(draw(st.sets(st.integers(1, newest))))
    places = st.lists(
        st.integers(0, PLACES), min_size=len(retiring), max_size=len(retiring), unique=True
    )
    pairs = zip(sorted(draw(places)), retiring, strict=True)
    boundaries = [Boundary(*pair) for pair in pairs]
    since_start = bool(boundaries) and boundaries[0].position == 0
    signing = draw(st.sampled_from(sorted(keys)))
    return Binding("live", EventKeys(keys, since_start, signing), boundaries)


@st.composite
def events(draw, binding):
    """Draw an event with a MAC that is ours, somebody else's, of another event, cut, or none."""
    append_id, position = draw(st.integers(1, PLACES + 2)), draw(st.integers(0, PLACES + 2))
    told = (UUID(int=draw(st.integers(0, 3))), draw(st.integers(1, 3)), "Topic", b"{}")
    key_id = draw(st.sampled_from(sorted(binding.keys.keys)))
    mac = binding.keys._replace(signing=key_id).mac(*told)
    others = OTHER._replace(signing=draw(st.sampled_from(sorted(OTHER.keys)))).mac(*told)
    odd = draw(st.binary(max_size=MAC_BYTES + 1))
    of_another = binding.keys.mac(told[0], told[1] + 1, *told[2:])
    renamed = bytes([draw(st.integers(0, 255))]) + mac[1:]
    macs = [mac, mac, None, others, odd, of_another, renamed, mac[:-1], mac + b"\0", b""]
    return StoredEvent(position, append_id, *told, draw(st.sampled_from(macs)))


async def placing(binding, page):
    """Return a binding that has looked up, in a log with their positions, what it needs."""
    positions = {one.append_id: one.position for one in page if one.position}

    async def fetch(_sql, asked):
        return [{"append_id": one, "position": positions[one]} for one in asked if one in positions]

    return await binding.placing(fetch, [(one.append_id, one.mac) for one in page])


@given(st.data())
async def test_a_page_has_those_events_that_are_ours_one_by_one(data):
    """By their positions, whether these are in the page or looked up for it."""
    binding = data.draw(bindings())
    page = data.draw(st.lists(events(binding), max_size=8, unique_by=lambda one: one.append_id))
    placed = await placing(binding, page)
    ours = binding.ours(page)
    assert ours == [one for one in page if placed.is_ours(*one[1:])]
    unplaced = placed.ours([one._replace(position=0) for one in page])
    assert [one.append_id for one in ours] == [one.append_id for one in unplaced]


@given(bindings(), st.integers(0, PLACES + 2), st.integers(1, PLACES + 2))
async def test_an_event_is_ours_by_the_newest_keys_that_counted_at_its_position(
    binding, position, append_id
):
    """None is needed before the first boundary; a retired key counts no more after its own.

    Without a number, nor does it, whenever the event's append_id was drawn.
    """
    before = [one for one in binding.boundaries if one.position < (position or PLACES + 9)]
    oldest = max((one.event_key for one in before), default=UNBOUND)
    told = (UUID(int=1), 1, "Topic", b"{}")
    page = [StoredEvent(position, append_id, *told)]
    for key_id in binding.keys.keys:
        mac = binding.keys._replace(signing=key_id).mac(*told)
        page.append(StoredEvent(position, append_id, *told, mac))
    ours = [0 if one.mac is None else one.mac[0] for one in binding.ours(page)]
    assert ours == [key_id for key_id in (0, *binding.keys.keys) if key_id >= oldest]


def test_no_event_of_a_retired_key_makes_it_count_again():
    """Whoever still has the key can sign a later `EventsBound` with it."""
    stream, told, keys = boundary_stream("live"), (BOUND_TOPIC, b"{}"), EventKeys(KEYS, True, 2)
    rows = []
    for version, (position, signing) in enumerate(((10, 2), (20, 1)), 1):
        mac = keys._replace(signing=signing).mac(stream, version, *told)
        rows.append(Bound(position, version, *told, mac))
    binding = binding_of("live", keys, rows)
    assert (binding.oldest, binding.boundaries[-1]) == (2, Boundary(10, 2))
    event = (UUID(int=1), 1, "Topic", b"{}")
    for signing, is_ours in ((1, False), (2, True)):
        mac = keys._replace(signing=signing).mac(*event)
        assert binding.is_ours(21, *event, mac) == is_ours


async def test_nothing_is_looked_up_where_no_event_has_a_retired_key():
    """Of a claim's decision, too: it stays one round trip."""

    async def fetch(*_):
        raise AssertionError

    keys = EventKeys({1: KEYS[1], 2: KEYS[2]}, since_start=True, signing=2)
    binding = Binding("live", keys, [Boundary(0), Boundary(7, 2)])
    mac = keys.mac(UUID(int=1), 1, "Topic", b"{}")
    assert await binding.placing(fetch, [(1, mac), (None, None)]) is binding
    of_start = Binding("live", keys, [Boundary(0)])
    assert await of_start.placing(fetch, [(1, None), (2, b"\1" + bytes(32))]) is of_start
