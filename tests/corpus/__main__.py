"""`python -m tests.corpus`: add the lines that the corpus lacks for the catalogue.

With `--accept` also write anew what every line is read as, after a topic got a new version: look at
the difference before you commit it.
"""

import sys

import msgspec

from service.ledger.events import Unreadable
from tests.corpus.corpus import DIRECTORY, SUMS, lines, missing, sums, written

SAMPLES = ("with every field", "with the fewest fields")
"""Of an event, in the order in which they are written."""


def main() -> None:
    """Add lines and print them. Existing hashes are kept: a changed line ends the run."""
    if SUMS.exists() and not set(SUMS.read_text().splitlines()) <= set(sums().splitlines()):
        sys.exit("a line of the corpus was changed or removed: put it back")
    for ledger, cls in missing():
        try:  # before anything is added, which is for ever
            made = [(line, msgspec.json.encode(line.expected())) for line in written(ledger, cls)]
        except Unreadable as error:
            name = cls.__name__
            sys.exit(
                f"{error}: give fields of {name} that are no text values in tests/ledger/samples.py"
            )
        for (line, expected), what in zip(made, SAMPLES, strict=False):  # one is both
            _append(f"{line.topic}.jsonl", msgspec.json.encode(line))
            _append(f"expected/{line.topic}.jsonl", expected)
            print(f"added {line.topic} version {line.class_version}, {what}")  # noqa: T201 - a script
    if "--accept" in sys.argv:
        _accept()
    SUMS.write_text(sums())


def _append(name: str, raw: bytes) -> None:
    path = DIRECTORY / name
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(raw + b"\n")


def _accept() -> None:
    for path in (DIRECTORY / "expected").glob("*.jsonl"):
        path.unlink()
    for line in lines().values():
        _append(f"expected/{line.topic}.jsonl", msgspec.json.encode(line.expected()))


if __name__ == "__main__":
    main()
