"""What a log is read with is looked at where it is read."""

from contextlib import asynccontextmanager

import pytest

from service.evidence.export.format import EvidenceFault
from service.evidence.report.known import is_named
from service.evidence.report.lines import ReportSubject
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from tests.evidence.checkpointing import KEY


async def test_the_settings_of_the_session_that_reads_a_log_are_looked_at(
    accounts, checkpoints, add, monkeypatch
):
    """Behind a pooler, they need not be those of another session."""
    await add(2)
    signed = (await checkpoints.make()).checkpoint
    assert (await verify_ledger(accounts.database, Evidence([KEY]))).ok
    pool = accounts.database.background
    lend = pool.connection

    @asynccontextmanager
    async def set_otherwise(deadline=None):
        async with lend(deadline) as connection:
            await connection.execute("set transform_null_equals = on")
            yield connection

    monkeypatch.setattr(pool, "connection", set_otherwise)
    said = "Sessions of accounts have transform_null_equals = on"
    verdict = await verify_ledger(accounts.database, Evidence([KEY]))
    assert (verdict.ok, said in (verdict.fault or "")) == (False, True), verdict
    with pytest.raises(EvidenceFault, match=said):
        await is_named(accounts, ReportSubject("partner_id", "ptn_0"), signed)
