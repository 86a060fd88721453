import msgspec
import pytest

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.ledger.codec import Codec, stored_form
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.events import Event
from tests.ledger.samples import CANARY, EVENTS, META, STREAM, sample

MASTER_KEYS = MasterKeys([bytes(32)])
KEY = MASTER_KEYS.new_data_key(STREAM)
CODEC = Codec("live", {**ACCOUNTS, **PARTNER_LEDGER})


@pytest.mark.parametrize("cls", EVENTS)
def test_every_event_comes_back_as_it_was_recorded(cls):
    """An event and its meta survive storage, its personal fields through the sealed box."""
    event = sample(cls)
    state = CODEC.encode(STREAM, 3, event, META, KEY)
    assert CODEC.decode(STREAM, 3, cls.__name__, state, KEY) == (event, META)
    sealed = stored_form(state).sealed
    assert (sealed and sealed.key) == (STREAM if cls.personal else None)


@pytest.mark.parametrize("cls", EVENTS)
def test_nothing_personal_is_in_the_stored_bytes(cls):
    """No personal value, in UTF-8 or escaped, can be found in what the log keeps."""
    state = CODEC.encode(STREAM, 1, sample(cls), META, KEY)
    assert CANARY.encode() not in state
    assert b"canary" not in state
    data = msgspec.json.decode(state)["data"]
    assert not set(cls.personal) & set(data)


@pytest.mark.parametrize("cls", [cls for cls in EVENTS if cls.personal])
def test_without_its_key_an_event_is_read_with_nothing_personal(cls):
    """Once the subject's key is destroyed, personal fields are None and the rest stands."""
    event = sample(cls)
    state = CODEC.encode(STREAM, 1, event, META, KEY)
    erased = msgspec.structs.replace(event, **dict.fromkeys(cls.personal))
    assert CODEC.decode(STREAM, 1, cls.__name__, state) == (erased, META)


@pytest.mark.parametrize("cls", [cls for cls in EVENTS if cls.personal])
def test_personal_fields_need_a_key(cls):
    """An event with personal values cannot be written in the clear by forgetting its key."""
    with pytest.raises(ValueError, match=cls.__name__):
        CODEC.encode(STREAM, 1, sample(cls), META, None)


def test_an_event_whose_personal_fields_are_empty_needs_no_box():
    """Nothing is sealed where there is nothing to seal."""
    cls = PARTNER_LEDGER["FirstMessagePosted"]
    event = msgspec.structs.replace(sample(cls), text=None)
    state = CODEC.encode(STREAM, 1, event, META, None)
    assert b"sealed" not in state
    assert CODEC.decode(STREAM, 1, "FirstMessagePosted", state, KEY) == (event, META)


@pytest.mark.parametrize(
    ("ledger", "stream", "version", "key_of"),
    [
        ("test", STREAM, 1, STREAM),
        ("live", type(STREAM)(int=8), 1, STREAM),
        ("live", STREAM, 2, STREAM),
        ("live", STREAM, 1, type(STREAM)(int=8)),
    ],
    ids=["another ledger", "another stream", "another version", "another key's name"],
)
def test_a_box_opens_only_where_it_was_sealed(ledger, stream, version, key_of):
    """A box moved to another ledger, stream, version or key id does not open."""
    state = CODEC.encode(STREAM, 1, sample(PARTNER_LEDGER["ClaimCreated"]), META, KEY)
    moved = state.replace(str(STREAM).encode(), str(key_of).encode())
    with pytest.raises(KeyUnknown):
        Codec(ledger, PARTNER_LEDGER).decode(stream, version, "ClaimCreated", moved, KEY)


class Renamed(Event):
    """Version 2 of a made-up event: `who` was `name`, and `why` is new."""

    class_version = 2
    personal = ("who",)
    why: str
    who: str | None = None

    @staticmethod
    def upcast_v1_v2(data):
        """Rename the field and say that the reason was not recorded then."""
        return {"why": "unknown", "who": data.get("name")}


class RenamedV1(Event):
    """The same event as version 1 wrote it."""

    personal = ("name",)
    name: str | None = None


@pytest.mark.parametrize("key", [KEY, None], ids=["with its key", "key destroyed"])
def test_an_older_event_is_brought_to_the_present_version(key):
    """A stored v1 event is read as v2, its sealed fields upcast along; its bytes stay."""
    old = Codec("live", {}).encode(STREAM, 1, RenamedV1(name=CANARY), META, KEY)
    event, meta = Codec("live", {"Renamed": Renamed}).decode(STREAM, 1, "Renamed", old, key)
    assert event == Renamed(why="unknown", who=CANARY if key else None)
    assert meta == META


def test_an_older_event_without_a_box_is_upcast_too():
    """Upcasting does not depend on there being something sealed."""
    old = Codec("live", {}).encode(STREAM, 1, RenamedV1(), META, None)
    event, _ = Codec("live", {"Renamed": Renamed}).decode(STREAM, 1, "Renamed", old)
    assert event == Renamed(why="unknown")
