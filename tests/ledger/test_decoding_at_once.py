"""Events that are decoded in one step, against those that are decoded in two: generated states."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.ledger.codec import Codec, stored_form
from service.ledger.encryption import MasterKeys
from service.ledger.events import Unreadable
from tests.ledger.samples import EVENTS, META, STREAM, sample

CODEC = Codec("live", {**ACCOUNTS, **PARTNER_LEDGER})
KEY = MasterKeys([bytes(32)]).new_data_key(STREAM)
STATES = {
    cls.__name__: CODEC.encode(STREAM, 1, sample(cls), META, KEY if cls.personal else None)
    for cls in EVENTS
}
DEEP = 3_000

odd_values = st.sampled_from(
    [
        *(
            b"null",
            b"true",
            b"0",
            b"-0",
            b"1",
            b"2",
            b"-1",
            b"1.0",
            b"1e0",
            b"2.5",
            b"1e400",
            b"NaN",
        ),
        *(b"%d" % (2**63), b"%d" % (2**64), b"1%s" % (b"0" * 400), b"01", b"1_0"),
        *(b'""', b'"1"', b'"\\u0000"', b'"\\ud800"', b'"\xff"', b'"\xed\xa0\x80"', b'"a', b'"\n"'),
        *(b'"2026-03-01T10:15:30.123Z"', b'"2026-03-01T10:15:30"', b'"2026-02-30T10:15:30Z"'),
        *(b"[]", b"{}", b"[1,]", b'{"a":1,"a":"2"}', b'{"a":}', b" 1 ", b"", b"AAAA", b'"AA=="'),
        *(b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP),
    ]
)
odd_keys = st.sampled_from(
    [b'"other"', b'"key"', b'"class_\\u0076ersion"', b'"d\\u0061ta"', b'"\xff"']
)
around = st.sampled_from([b"", b"", b"", b" \n", b"\xef\xbb\xbf", b"\0", b"x", b"{}", b",", b"]"])


def members(document):
    """Return an object's members, each as its key and its value are written."""
    return [
        (json.dumps(key).encode(), json.dumps(value).encode()) for key, value in document.items()
    ]


def written(found):
    """Return an object with these members, as often and in the order in which they come."""
    return b"{%s}" % b",".join(key + b":" + value for key, value in found)


@st.composite
def altered(draw, document):
    """Draw an object with members changed, left out, repeated, added and in another order."""
    found = members(document)
    for _ in range(draw(st.integers(0, 2))):
        key = draw(st.one_of(st.sampled_from([key for key, _ in members(document)]), odd_keys))
        same = [value for name, value in members(document) if name == key]
        value = draw(st.one_of(odd_values, st.sampled_from(same)) if same else odd_values)
        found.insert(draw(st.integers(0, len(found))), (key, value))
        if draw(st.booleans()):
            found.remove(draw(st.sampled_from(found)))
    return written(draw(st.permutations(found)) if draw(st.booleans()) else found)


@st.composite
def stored(draw):
    """Draw a topic, and a state that may be one of its events."""
    topic = draw(st.sampled_from(sorted(STATES)))
    parts = {key: json.dumps(value).encode() for key, value in json.loads(STATES[topic]).items()}
    for name in draw(st.sets(st.sampled_from(["data", "meta"]))):
        parts[name] = draw(altered(json.loads(parts[name])))
    found = list(parts.items())
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from([*parts, "other"]))
        value = draw(st.one_of(odd_values, st.sampled_from(sorted(parts.values()))))
        found.insert(draw(st.integers(0, len(found))), (name, value))
    state = written([(json.dumps(name).encode(), value) for name, value in found])
    state = draw(around) + state + draw(around)
    return topic, state[: draw(st.integers(0, len(state)))] if not draw(
        st.integers(0, 9)
    ) else state


def in_two_steps(topic, state):
    """Return the event and its meta without a key; None where it is unreadable."""
    try:
        form = stored_form(state, with_sealed=False)
        return CODEC.decode_stored(STREAM, 1, topic, form, None)
    except Unreadable:
        return None


@given(stored())
def test_what_is_decoded_at_once_is_what_two_steps_decode(found):
    """Whatever a state holds: the same values of the same types, or it is left to the two steps."""
    clear = CODEC.decode_clear(*found)
    assert clear is None or repr(clear) == repr(in_two_steps(*found))


@pytest.mark.parametrize("topic", STATES)
def test_an_event_of_its_present_version_is_decoded_at_once(topic):
    """With a box or without one, and so the comparison above is of something."""
    clear = CODEC.decode_clear(topic, STATES[topic])
    assert clear is not None
    assert clear == in_two_steps(topic, STATES[topic])
