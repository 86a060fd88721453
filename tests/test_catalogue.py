import re
from pathlib import Path

import pytest

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER, catalogue_document

EVERY = {**ACCOUNTS, **PARTNER_LEDGER}


def test_the_document_lists_the_catalogue():
    """docs/events.md ends in exactly the catalogue that the code has."""
    text = Path("docs/events.md").read_text()
    listed = text.partition("## The events\n\n")[2]
    assert listed == catalogue_document(), "docs/events.md is generated: run `just generate`"


LOCKS = {
    *("application", "business", "effects", "log-finding", "log-verification", "mail-recipient"),
}
"""What `stream_id` names beside streams of events: locks, and rows that have a MAC."""


def test_the_document_lists_the_streams():
    """Each has a row, which begins with the word that its id begins with."""
    text = Path("docs/events.md").read_text().partition("## Streams\n")[2].partition("## ")[0]
    told = re.findall(r"^\| [^|]+ \| `([\w-]+)`", text, re.MULTILINE)
    code = "\n".join(path.read_text() for path in Path("service").rglob("*.py"))
    named = set(re.findall(r"stream_id\(\s*\"([\w-]+)\"", code))
    assert sorted(told) == sorted(named - LOCKS)
    assert named >= LOCKS


@pytest.mark.parametrize("event", EVERY.values(), ids=EVERY)
def test_every_older_version_has_an_upcast(event):
    """An event of version N can be read from each version before it."""
    missing = [
        version
        for version in range(1, event.class_version)
        if not callable(getattr(event, f"upcast_v{version}_v{version + 1}", None))
    ]
    assert missing == []


@pytest.mark.parametrize("event", EVERY.values(), ids=EVERY)
def test_sealed_fields_are_optional(event):
    """A destroyed data key leaves every personal field absent, which its type allows."""
    optional = event.__struct_fields__[-len(event.__struct_defaults__) :]
    assert set(event.personal) <= set(optional)
