"""Which events are ours: of a page as of each alone, under generated keys and boundaries."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from service.ledger.binding import Binding, Boundary
from service.ledger.decoding import StoredEvent
from service.ledger.event_macs import MAC_BYTES, UNBOUND, EventKeys

KEYS = {number: bytes([number]) * 32 for number in range(1, 5)}
OTHER = EventKeys(dict.fromkeys(range(1, 8), b"other" * 7), since_start=False, signing=1)
PLACES = 40


@st.composite
def bindings(draw):
    """Draw keys, of which the newest signs, and the boundaries that retired some, if any."""
    newest = draw(st.integers(1, len(KEYS)))
    keys = {number: KEYS[number] for number in range(1, newest + 1)}
    retiring = sorted(draw(st.sets(st.integers(1, newest))))
    places = st.lists(
        st.integers(0, PLACES), min_size=len(retiring), max_size=len(retiring), unique=True
    )
    # Numbered in the order of appending, as they are in one stream; not at the same numbers.
    pairs = zip(sorted(draw(places)), sorted(draw(places)), retiring, strict=True)
    boundaries = [Boundary(*pair) for pair in pairs]
    since_start = bool(boundaries) and boundaries[0].append_id == 0
    return Binding("live", EventKeys(keys, since_start, newest), boundaries)


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


@given(st.data())
def test_a_page_has_those_events_that_are_ours_one_by_one(data):
    """By the order of appending, whatever their numbers are."""
    binding = data.draw(bindings())
    page = data.draw(st.lists(events(binding), max_size=8))
    assert binding.ours(page) == [one for one in page if binding.is_ours(*one[1:])]


@given(bindings(), st.integers(1, PLACES + 2))
def test_an_event_is_ours_by_the_newest_keys_that_counted_where_it_was_appended(binding, append_id):
    """None is needed before the first boundary; a retired key counts no more after its own."""
    oldest = max((one[2] for one in binding.boundaries if one[1] < append_id), default=UNBOUND)
    told = (UUID(int=1), 1, "Topic", b"{}")
    page = [StoredEvent(7, append_id, *told)]
    for key_id in binding.keys.keys:
        mac = binding.keys._replace(signing=key_id).mac(*told)
        page.append(StoredEvent(7, append_id, *told, mac))
    ours = [0 if one.mac is None else one.mac[0] for one in binding.ours(page)]
    assert ours == [key_id for key_id in (0, *binding.keys.keys) if key_id >= oldest]
