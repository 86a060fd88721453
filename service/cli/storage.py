"""`claim-ledger storage`."""

from functools import partial

from service.app.storage import storage_of_mode
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings, Fine, listed
from service.core.counted import counted
from service.storage.check import check as checks_of


@team_command
async def check(target: Target) -> Fields:
    """Check the buckets' configuration and try an upload; exits with 1 if anything is wrong."""
    settings = target.service.settings
    buckets = {"live": settings.live_bucket, "test": settings.test_bucket}
    checks = [
        {"mode": mode} | done._asdict()
        for mode in target.service.modes
        for done in await checks_of(partial(storage_of_mode, settings, mode), buckets[mode])
    ]
    return answer_of(checks)


def answer_of(checks: list[Fields]) -> Fields:
    """Return the answer, with its verdict."""
    failed = [one for one in checks if one["result"] == "failed"]
    answer: Fields = {"is_well": not failed, "checks": checks}
    if failed:
        return Findings(answer, listed([f"{one['mode']}: {one['check']}" for one in failed]))
    notes = sum(one["result"] == "note" for one in checks)
    noted = f", {counted(notes, 'note')}" if notes else ""
    return Fine(answer, f"{counted(len(checks), 'check')} passed{noted}")
