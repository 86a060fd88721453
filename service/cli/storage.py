"""`claim-ledger storage`."""

from functools import partial

from service.app.storage import storage_of_mode
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings
from service.storage.check import check as checks_of


@team_command
async def check(target: Target) -> Fields:
    """Check the buckets' configuration, and prove uploads; exits with 1 if anything is wrong."""
    settings = target.service.settings
    buckets = {"live": settings.live_bucket, "test": settings.test_bucket}
    checks = [
        {"mode": mode} | done._asdict()
        for mode in target.service.modes
        for done in await checks_of(partial(storage_of_mode, settings, mode), buckets[mode])
    ]
    is_well = all(done["result"] != "failed" for done in checks)
    answer = {"is_well": is_well, "checks": checks}
    return answer if is_well else Findings(answer)
