"""`python -m tests.facts.request_fields`: store the fields of each new version of a request.

`request_fields.json` has, for each idempotent request and each version of its shape, the fields of
its structs in their order: what a fingerprint of that version covers (service/facts/replays.py). A
version never changes once it is here, for ledgers have fingerprints of it. It is stored with the
change that made it, so the next field belongs to the next version.
"""

import json
import sys
from pathlib import Path
from typing import Final

import msgspec

from service.claims.wire import ClaimRequest
from service.facts import replays
from service.onboardings.wire import OnboardingRequest

KINDS: Final = (ClaimRequest, OnboardingRequest)
FILE: Final = Path(__file__).with_suffix(".json")

Shape = dict[str, list[str]]
"""The fields of structs, by their names."""
Versions = dict[int, Shape]


def stored(kind: type[msgspec.Struct]) -> Versions:
    """Return the stored versions of a request."""
    found: dict[str, dict[str, Shape]] = json.loads(FILE.read_text())
    return {int(version): shape for version, shape in found[kind.__name__].items()}


def next_version(versions: Versions) -> int:
    """Return the version of a field that is new: the first that has no fingerprints yet."""
    return max(*versions, replays.FINGERPRINT_VERSION) + 1


def shape_of(kind: type[msgspec.Struct], version: int) -> Shape:
    """Return a request's shape in a version, without structs that have no field in it yet."""
    shapes = {
        struct.__name__: [
            name for name, since in replays.fields_since(struct).items() if since <= version
        ]
        for struct in sorted(replays.shapes(kind), key=lambda one: one.__name__)
    }
    return {name: fields for name, fields in shapes.items() if fields}


def faults(kind: type[msgspec.Struct], versions: Versions) -> list[str]:
    """Return what to do about fields that the stored versions have otherwise."""
    new = next_version(versions)
    known = {(struct, name) for one in versions.values() for struct in one for name in one[struct]}
    misplaced = [
        f'`{name}` is new: give it extra={{"since": {new}}}'
        for struct in replays.shapes(kind)
        for name, since in replays.fields_since(struct).items()
        if (struct.__name__, name) not in known and since != new
    ]
    changed = [
        f"version {version} of {kind.__name__} has fingerprints in ledgers: put back its fields, "
        f"their order and their `since`, which were {shape}; or, if that version was never "
        f"released, take it out of {FILE.name}"
        for version, shape in versions.items()
        if shape_of(kind, version) != shape
    ]
    return misplaced or changed


def to_store(kind: type[msgspec.Struct], versions: Versions) -> Versions:
    """Return the version that a request got and the stored ones lack, if there is one."""
    newest = replays.request_version(kind)
    if newest in {*versions, replays.FINGERPRINT_VERSION}:  # the latter has no fields of its own
        return {}
    return {newest: shape_of(kind, newest)}


def main() -> None:
    """Add each request's new version; end the run where an older one was changed."""
    document: dict[str, dict[str, Shape]] = {}
    for kind in KINDS:
        versions = stored(kind)
        if wrong := faults(kind, versions):
            sys.exit("\n".join(wrong))
        versions |= to_store(kind, versions)
        document[kind.__name__] = {str(version): shape for version, shape in versions.items()}
    FILE.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
