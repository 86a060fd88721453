"""Counts the events that a process decodes, whoever reads them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.ledger.codec import Codec


@contextmanager
def decoded() -> Iterator[list[str]]:
    """Return a list to which the topic of each event is added that is decoded inside the block."""
    topics: list[str] = []
    clear, stored = Codec.decode_clear, Codec.decode_stored

    def counted_clear(self, topic, state):
        topics.append(topic)
        return clear(self, topic, state)

    def counted_stored(self, stream_id, version, topic, *rest):
        topics.append(topic)
        return stored(self, stream_id, version, topic, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Codec, "decode_clear", counted_clear)
        patch.setattr(Codec, "decode_stored", counted_stored)
        yield topics
