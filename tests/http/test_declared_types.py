"""What the API's types declare is fit for use, and said to partners."""

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import UNSET, UnsetType, defstruct

from service.claims.wire import REFERENCES
from service.http.scalars import LIMITS, Text, described
from service.partner_api.docs.guide import CHARACTERS, ENTRIES
from service.partner_api.endpoints import Endpoint, Success


def test_a_rule_that_msgspec_refuses_is_found_when_its_endpoint_is_made():
    """With the endpoint and the type: not by the first request, nor by each test of the API."""
    rule = Annotated[Text | UnsetType, described("A reference.", max_length=100)]
    wrong = defstruct("Wrong", [("reference", rule, UNSET)])
    with pytest.raises(TypeError, match="show_it, Wrong: Can only set `max_length` on a str"):
        Endpoint(
            id="show_it",
            method="get",
            path="/it",
            tag="Claims",
            summary="Show it",
            description="Shows it.",
            successes=(Success(200, wrong, "It."),),
        )


def test_partners_are_told_each_limit():
    """One that is missing from the guide would seem to be that of any string."""
    lacking = LIMITS.keys() - {*CHARACTERS, *ENTRIES}
    assert not lacking, (
        "say what is limited: in CHARACTERS or ENTRIES, in service/partner_api/docs/guide.py"
    )
    assert LIMITS.keys() >= {*CHARACTERS, *ENTRIES}


def test_the_references_in_the_clear_are_named():
    """The document for those who protect personal data has each."""
    named = ", ".join(f"`{name}`" for name in REFERENCES)
    text = " ".join(Path("docs/privacy.md").read_text().split())
    assert f"the partner's references ({named})" in text, (
        f"name what is stored in the clear in docs/privacy.md: {named}"
    )
