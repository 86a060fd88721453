"""What the API's types declare is fit for use."""

from typing import Annotated

import pytest
from msgspec import UNSET, UnsetType, defstruct

from service.http.scalars import Text, described
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
