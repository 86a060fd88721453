"""Settings under their old names: they work, with a warning, and are documented."""

import pytest

from service.app.setting import PREFIX
from service.app.settings import SETTINGS, given, settings_table
from service.app.warned import warn_once
from tests.given_settings import faults, settings

RENAMED = {
    "BACKGROUND": ("RUN_WORKER", "off", False),
    "PUBLISH_TO": ("ARCHIVE_URL", "file:///archive", "file:///archive"),
    "CHECKPOINT_SECONDS": ("CHECKPOINT_INTERVAL_SECONDS", "60", 60),
}


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return the log of a process that has not warned yet."""
    warn_once.cache_clear()  # stands for a new process
    return caplog


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_still_works(old: str, warnings: pytest.LogCaptureFixture) -> None:
    """It is accepted, with a warning that names the old and the new one."""
    new, text, value = RENAMED[old]
    for _ in range(2):
        assert getattr(settings(**{old: text}), new.lower()) == value
    (warning,) = warnings.messages
    assert f"{PREFIX}{old} is deprecated" in warning
    assert f"set {PREFIX}{new} instead" in warning


@pytest.mark.parametrize("old", RENAMED)
def test_both_names_have_to_agree(old: str, warnings: pytest.LogCaptureFixture) -> None:
    """Different values under both names are a fault; empty counts as not set."""
    new, text, value = RENAMED[old]
    for other in (text, ""):
        assert getattr(settings(**{old: other, new: text}), new.lower()) == value
    (fault,) = faults(**{old: text, new: "else"})
    assert fault == f"{new}: differs from its old name {PREFIX}{old}: unset that one"
    assert len(warnings.messages) == 1


def test_old_names_are_documented() -> None:
    """The table has each old name beside the new one."""
    rows = {line.split("`")[1]: line for line in settings_table().splitlines()[2:]}
    for old, (new, _, _) in RENAMED.items():
        assert f"formerly `{PREFIX}{old}`" in rows[f"{PREFIX}{new}"]
    assert {row.formerly for row in SETTINGS if row.formerly} == {PREFIX + old for old in RENAMED}


def test_an_old_name_is_also_given() -> None:
    """Settings as given in the environment include those under old names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"{PREFIX}PUBLISH_TO", "file:///archive")
        patch.delenv(f"{PREFIX}ARCHIVE_URL", raising=False)
        assert given("ARCHIVE_URL") == {f"{PREFIX}PUBLISH_TO": "file:///archive"}
