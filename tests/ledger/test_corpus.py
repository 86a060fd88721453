"""Events of every version of the catalogue are read for ever, by our software and by other."""

import msgspec
import pytest
from eventsourcing.persistence import StoredEvent

from service.evidence.replay.independent import PlainMapper
from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.ledger.codec import Codec
from service.ledger.encryption import MasterKeys
from service.ledger.events import Event
from tests.corpus.corpus import SUMS, expectations, lines, missing, sums
from tests.ledger.samples import META, STREAM

LINES = lines()
CATALOGUE = {**ACCOUNTS, **PARTNER_LEDGER}
KEY = MasterKeys([bytes(32)]).new_data_key(STREAM)


@pytest.mark.parametrize("name", LINES)
def test_a_stored_event_is_read_as_it_always_was(name):
    """With its key, and with the key destroyed, a line decodes to what is written beside it."""
    expected = expectations()[name]
    assert LINES[name].expected() == expected
    assert expected["open"].items() >= expected["erased"].items()


@pytest.mark.parametrize("name", LINES)
def test_other_software_reads_the_same(name):
    """The mapper of the independent replay finds the data that is not sealed, and the same meta."""
    line = LINES[name]
    plain = PlainMapper(CATALOGUE).to_domain_event(
        StoredEvent(line.stream, line.version, line.topic, line.state.encode())
    )
    event, meta = line.read(erased=True)
    assert msgspec.convert(plain.data, type(event)) == event
    assert msgspec.convert(plain.meta, type(meta)) == meta
    assert (plain.originator_id, plain.originator_version) == (line.stream, line.version)


def test_every_topic_version_and_field_is_in_the_corpus():
    """A new event, version of one, or optional field, is added by `just generate`."""
    lacking = [cls.__name__ for _, cls in missing()]
    assert not lacking, "these have no sample, or none with every field: run `just generate`"
    assert {line.topic for line in LINES.values()} >= set(CATALOGUE)


def test_no_line_was_changed_or_removed():
    """Each line has the hash that was written when it was added, and none is gone.

    What has been stored somewhere cannot be stored otherwise afterwards.
    """
    assert sums() == SUMS.read_text()
    assert sorted(expectations()) == sorted(LINES)


class Weighed(Event):
    """Version 3 of a made-up event: `grams` were `kilos`, and `by` was `who` before that."""

    class_version = 3
    personal = ("by",)
    grams: int
    by: str | None = None

    @staticmethod
    def upcast_v1_v2(data):
        """Rename a sealed field."""
        kept = {name: value for name, value in data.items() if name != "who"}
        return kept | ({"by": data["who"]} if "who" in data else {})

    @staticmethod
    def upcast_v2_v3(data):
        """Change a unit."""
        kept = {name: value for name, value in data.items() if name != "kilos"}
        return kept | {"grams": data["kilos"] * 1000}


class WeighedV1(Event):
    """The same event as version 1 wrote it."""

    personal = ("who",)
    kilos: int
    who: str | None = None


class WeighedV2(Event):
    """The same event as version 2 wrote it."""

    class_version = 2
    personal = ("by",)
    kilos: int
    by: str | None = None


@pytest.mark.parametrize(
    "event",
    [WeighedV1(kilos=2, who="Zoë"), WeighedV2(kilos=2, by="Zoë"), Weighed(grams=2000, by="Zoë")],
    ids=["v1", "v2", "v3"],
)
def test_old_events_are_upcast_in_ours_and_in_other_software(event):
    """Each version is read as the present one, a step at a time; what is sealed only by ours."""
    catalogue = {"Weighed": Weighed}
    state = Codec("live", {}).encode(STREAM, 1, event, META, KEY)
    ours = Codec("live", catalogue)
    mapper = PlainMapper(catalogue)
    plain = mapper.to_domain_event(StoredEvent(STREAM, 1, "Weighed", state))
    assert ours.decode(STREAM, 1, "Weighed", state, KEY) == (Weighed(grams=2000, by="Zoë"), META)
    assert ours.decode(STREAM, 1, "Weighed", state) == (Weighed(grams=2000), META)
    assert plain.data == {"grams": 2000}


def test_nothing_is_written_through_the_library():
    """The mapper reads only."""
    mapper = PlainMapper(CATALOGUE)
    state = next(iter(LINES.values())).state.encode()
    topic = next(iter(LINES.values())).topic
    plain = mapper.to_domain_event(StoredEvent(STREAM, 1, topic, state))
    with pytest.raises(TypeError, match="cannot be written"):
        mapper.to_stored_event(plain)
