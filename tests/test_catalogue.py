from pathlib import Path

import pytest

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER, catalogue_document

EVERY = {**ACCOUNTS, **PARTNER_LEDGER}


def test_the_document_lists_the_catalogue():
    """docs/events.md ends in exactly the catalogue that the code has."""
    text = Path("docs/events.md").read_text()
    assert text.partition("## The events\n\n")[2] == catalogue_document()


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
