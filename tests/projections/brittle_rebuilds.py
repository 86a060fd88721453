"""Rebuilding a read model that parks streams, as an operator does."""

import psycopg
import pytest

from service.ledger.read_model import ReadModel
from service.ledger.rebuild.session import clear_left_over, rebuild_session
from tests.projections.brittle import Setting
from tests.projections.rebuilding import quiet
from tests.world import service_on, settings_for

NEXT = """
select count(*) from pg_class
where relnamespace = to_regnamespace('accounts_next') and relkind = 'r'
"""
KEPT_AT = "select previous_position from accounts.read_models where name = 'brittle'"


class Rebuilding(Setting):
    """A brittle read model of accounts, and an operator's commands on it."""

    def __init__(self, service, owner, url):
        super().__init__(service, owner)
        self.url = url
        self.model = ReadModel(self.ledger, self.projector, "catch-up")

    async def rebuild(self, *, park=False):
        """Make it anew."""
        async with rebuild_session(self.url, "accounts") as shop:
            return await shop.rebuild(self.model, quiet, if_equal=False, park=park)

    async def rollback(self, advance=quiet):
        """Go back."""
        async with rebuild_session(self.url, "accounts") as shop:
            return await shop.rollback(self.model, advance)

    async def verify(self, kind="catch-up"):
        """Compare with a replay."""
        async with rebuild_session(self.url, "accounts") as shop:
            return await shop.verify(self.model._replace(kind=kind), quiet)

    async def work(self):
        """Begin to work on the ledger, and leave it."""
        async with rebuild_session(self.url, "accounts"):
            pass

    async def clear_left_over(self):
        """Clear up as the status does."""
        await clear_left_over(self.url, "accounts")

    def left_over(self):
        """Return how many tables are unfinished."""
        return self.owner.execute(NEXT).fetchone()[0]

    def kept_at(self):
        """Return how far the kept rows are."""
        return self.owner.execute(KEPT_AT).fetchone()[0]


@pytest.fixture
async def one(database_url, tmp_path):
    """Return a ledger that nobody follows by itself, and a read model of it."""
    with psycopg.connect(database_url, autocommit=True) as owner:
        async with service_on(settings_for(database_url, tmp_path)) as service:
            yield Rebuilding(service, owner, database_url)
