"""Which libraries of `uv.lock` have been used for longer than docs/security.md allows.

`just check-dependencies` asks osv.dev for known vulnerabilities, through `uv audit`, and the index
for newer versions. It lists what it finds, and exits with 1 once the time of something is over.
`--ignore ID` is for a vulnerability that does not apply: give it in the Justfile, with the reason.
"""

import json
import subprocess
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import httpx

OSV: Final = "https://api.osv.dev"
RATED: Final = {"MODERATE": timedelta(days=30), "LOW": timedelta(days=30)}
SEVERE: Final = timedelta(days=7)
"""For what is rated higher, or not at all."""
OUTDATED: Final = timedelta(days=90)

Rating = Callable[[Mapping[str, Any]], str]
"""Returns how severe a vulnerability of `uv audit`'s is, in capitals; empty where it is unknown."""


class Finding(NamedTuple):
    """What has to be replaced, and until when."""

    due: datetime
    text: str


def vulnerable(report: Mapping[str, Any], rating: Rating) -> list[Finding]:
    """Return a finding for each vulnerability in the JSON of `uv audit`."""
    return [_vulnerability(one, rating(one)) for one in report["vulnerabilities"]]


def _vulnerability(one: Mapping[str, Any], rated: str) -> Finding:
    # Without a date its time is over: nothing says that it is not.
    published = (
        _moment(one["published"]) if one.get("published") else datetime.min.replace(tzinfo=UTC)
    )
    mended = ", ".join(one["fix_versions"]) or "no version yet"
    library = f"{one['dependency']['name']} {one['dependency']['version']}"
    return Finding(
        published + RATED.get(rated, SEVERE),
        f"{library}: {one['id']}, {rated.lower() or 'not rated'}; mended by {mended}",
    )


def outdated(locked: Mapping[str, Any], newest: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each version in a newer lock that is newer than those of a lock."""
    used: dict[str, datetime] = {}
    for name, _, at in _uploads(locked):
        used[name] = max(at, used.get(name, at))
    return [
        Finding(at + OUTDATED, f"{name}: {version} is newer than what is used")
        for name, version, at in _uploads(newest)
        if name in used and at > used[name]
    ]


def _uploads(lock: Mapping[str, Any]) -> list[tuple[str, str, datetime]]:
    """Return name, version and first upload of each package of a lock that is from the index."""
    found: list[tuple[str, str, datetime]] = []
    for package in lock["package"]:
        files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        if times := [_moment(file["upload-time"]) for file in files if "upload-time" in file]:
            found.append((package["name"], package["version"], min(times)))
    return found


def _moment(text: str | datetime) -> datetime:
    return datetime.fromisoformat(text) if isinstance(text, str) else text


def _audited(arguments: Namespace) -> Mapping[str, Any]:
    """Return what `uv audit` found; exit as it does where it could not look."""
    ignored = [f"--ignore={one}" for one in arguments.ignore]
    command = ["uv", "audit", "--frozen", "--service-url", arguments.service_url, *ignored]
    form = ["--output-format", "json", "--preview-features", "audit-command,json-output"]
    done = subprocess.run([*command, *form], stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        sys.exit(done.returncode or 1)
    return json.loads(done.stdout)


def _rating_by(service_url: str) -> Rating:
    """Return what asks for the rating of GitHub's advisory: others have none, or only a vector."""

    def rating(one: Mapping[str, Any]) -> str:
        for name in [one["id"], *one["aliases"]]:
            if name.startswith("GHSA-"):
                answer = httpx.get(f"{service_url}/v1/vulns/{name}", timeout=30).raise_for_status()
                return str(answer.json().get("database_specific", {}).get("severity", "")).upper()
        return ""

    return rating


def _upgraded() -> Mapping[str, Any]:
    """Return the lock that all the newest versions would make, without changing ours."""
    with TemporaryDirectory() as directory:
        for name in ("pyproject.toml", "uv.lock"):
            copy(name, directory)
        subprocess.run(["uv", "lock", "-q", "--upgrade", "--project", directory], check=True)
        return tomllib.loads(Path(directory, "uv.lock").read_text())


def main(given: Sequence[str] | None = None) -> int:
    """List what is to be replaced, first what is due first; return 1 if the time of any is over."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--ignore", metavar="ID", action="append", default=[])
    parser.add_argument("--service-url", default=OSV, help="OSV, or a mirror of it")
    arguments = parser.parse_args(given)
    findings = vulnerable(_audited(arguments), _rating_by(arguments.service_url))
    findings += outdated(tomllib.loads(Path("uv.lock").read_text()), _upgraded())
    now = datetime.now(UTC)
    for due, text in sorted(findings):
        when = "OVER" if due < now else f"until {due:%Y-%m-%d}"
        sys.stdout.write(f"{when}  {text}\n")
    return int(any(due < now for due, _ in findings))


if __name__ == "__main__":
    sys.exit(main())
