"""A minute of mixed traffic while PostgreSQL, Redis and the service's processes are killed."""

import secrets

from tests.chosen_postgres import bin_dir_of
from tests.faults.clusters import folder_for_all
from tests.soak.history import History
from tests.soak.run import soak

SECONDS = 60
PAUSE_SECONDS_MAX = 0.15
"""Of clients that leave the processors to other tests."""


async def test_nothing_is_lost_or_doubled_in_a_minute_of_kills(request):
    """What was acknowledged is in the ledger once, read models agree, nothing is left behind."""
    seed, history = secrets.randbelow(10**6), History()
    with folder_for_all() as home:
        figures = await soak(
            home,
            history,
            seconds=SECONDS,
            seed=seed,
            bin_dir=bin_dir_of(request.config),
            pause_seconds_max=PAUSE_SECONDS_MAX,
        )
    assert figures["acknowledged"] > 0, figures
    assert figures["kills"], figures
    assert (figures["lost"], figures["doubled"], figures["diverged"]) == (0, 0, 0), figures
    documents = figures["documents"]
    assert documents.pop("acknowledged") > 0, figures
    assert set(documents.values()) == {0}, figures
    assert figures["history"] == [], figures
    assert (figures["leaks"]["backends"], figures["leaks"]["processes"]) == (0, 0), figures
    assert len(history.operations) == figures["requests"]
