"""Which pictures `just screenshots` takes."""

import pytest

from tests.pages.gallery import SHOTS
from tests.pages.screenshots import wanted


def test_shots_are_chosen_by_how_their_names_begin():
    """All of them where none is named."""
    chosen = [shot.name for shot in wanted(["console-key-r", "home"])]
    assert chosen == ["home", "console-key-roll", "console-key-revoke"]
    assert wanted([]) == SHOTS


def test_a_name_that_no_shot_begins_with_is_refused():
    """With those that there are, and whatever else is named."""
    with pytest.raises(SystemExit) as refused:
        wanted(["home", "nosuch", "ome"])
    assert str(refused.value).startswith("no shot begins with nosuch, ome; there are sign-in, ")
