"""How long libraries may be used once better ones are there."""

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.libraries import OUTDATED, RATED, SEVERE, outdated, vulnerable
from tests.tables import every_row

PUBLISHED = datetime(2026, 3, 1, tzinfo=UTC)


def report(**changes):
    """Return what `uv audit` prints of one vulnerability."""
    one = {
        "dependency": {"name": "jinja2", "version": "3.1.6"},
        "id": "GHSA-aaaa-bbbb-cccc",
        "aliases": [],
        "fix_versions": ["3.1.7"],
        "published": "2026-03-01T00:00:00Z",
    }
    return {"vulnerabilities": [one | changes]}


def lock(**versions):
    """Return a lock of packages, by name a version and the day of March on which it came out."""
    text = 'version = 1\n[[package]]\nname = "ours"\nversion = "1"\nsource = { editable = "." }\n'
    for name, (version, day) in versions.items():
        file = f'{{ url = "x", upload-time = "2026-03-{day:02}T00:00:00Z" }}'
        text += f'[[package]]\nname = "{name}"\nversion = "{version}"\nwheels = [{file}]\n'
    return tomllib.loads(text)


def test_a_vulnerability_has_a_time_by_its_severity():
    """As long as its rating allows; the least where it has none, and none without a date."""
    days = {"CRITICAL": 7, "HIGH": 7, "": 7, "MODERATE": 30, "LOW": 30}
    with every_row() as row:
        for rated, allowed in days.items():
            with row(rated):
                (found,) = vulnerable(report(), lambda _, rated=rated: rated)
                assert found.due == PUBLISHED + timedelta(days=allowed)
                assert "jinja2 3.1.6: GHSA-aaaa-bbbb-cccc" in found.text
                assert "3.1.7" in found.text
    (undated,) = vulnerable(report(published=None, fix_versions=[]), lambda _: "LOW")
    assert undated.due < PUBLISHED
    assert "no version yet" in undated.text


def test_a_newer_version_has_a_time_from_its_release():
    """What is as it is in both, is older, or is new to the lock is none."""
    used = lock(same=("1.0", 1), behind=("1.0", 1), ahead=("2.0", 9))
    newest = lock(same=("1.0", 1), behind=("1.1", 5), ahead=("1.9", 2), added=("1.0", 1))
    (found,) = outdated(used, newest)
    assert found.due == datetime(2026, 3, 5, tzinfo=UTC) + OUTDATED
    assert found.text.startswith("behind: 1.1")


def test_the_times_are_those_that_are_promised():
    """By docs/security.md."""
    promised = Path("docs/security.md").read_text().split("\n## Libraries\n")[1].split("\n## ")[0]
    rows = [line for line in promised.splitlines() if line.startswith("| ")][1:]
    (moderate, low) = RATED.values()
    assert moderate == low
    for row, time in zip(rows, (SEVERE, low, OUTDATED), strict=True):
        assert f"| {time.days} days after" in row
