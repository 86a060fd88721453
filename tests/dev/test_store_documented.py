"""What partners are told of the store's errors is what it answers."""

import re
from pathlib import Path

TOLD = Path("docs/partners/documents.md").read_text()
REFUSALS = Path("service/cli/dev/gcs/refusals.py").read_text()


def test_each_error_of_a_put_has_the_status_that_the_store_gives_it():
    """The statuses are those that the cloud was seen to answer."""
    given = set(re.findall(r'(\d{3}),\s*"([A-Z]\w+)"', REFUSALS))
    told = {
        (status, code)
        for status, codes in re.findall(r"\| PUT: (\d{3}) ([^|]+?) \|", TOLD)
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert len(told) >= 5
    assert told - given == set()
