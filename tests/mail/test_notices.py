"""What notices say: all of them are in the gallery, and names in them are safe."""

import inspect
from datetime import UTC, datetime

import pytest

from service.mail import messages, notices
from service.mail.letters import Letter
from service.mail.samples import SAMPLES
from service.pages.words import TEXTS

NASTY = "https://evil.example"
AT = datetime(2026, 3, 8, 14, 30, tzinfo=UTC)
LETTERS = {
    name.removesuffix("_letter"): write
    for module in (messages, notices)
    for name, write in inspect.getmembers(module, inspect.isfunction)
    if write.__module__ == module.__name__ and write.__annotations__.get("return") is Letter
}


def test_the_gallery_has_every_letter():
    """With a name on the page for each."""
    assert set(SAMPLES) == set(LETTERS)
    assert [name for name in SAMPLES if f"backoffice.mail.{name}" not in TEXTS] == []


@pytest.mark.parametrize("name", sorted(LETTERS))
def test_names_in_letters_are_no_links(name):
    """Whoever chose them: not in the subject, and never as they are in the text or the HTML."""
    fields = inspect.signature(LETTERS[name]).parameters
    given = {field: f"https://example.com/{field}" for field in ("link", "console", "claim")}
    given |= dict.fromkeys(("company_name", "partner_name", "user_name", "email"), NASTY)
    given |= {"stage": "triage", "key_id": "key_1", "new_key_id": "key_2", "entity_id": "ent_1"}
    letter = LETTERS[name](
        **{field: given.get(field) for field in fields if field not in {"expires_at", "ends_at"}},
        **{field: AT for field in ("expires_at", "ends_at") if field in fields},
    )
    assert "evil" not in letter.subject
    for part in (letter.text, letter.body):
        assert part.count("://") == 1
        assert "evil.example" not in part
