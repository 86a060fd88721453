"""Every statement is planned and run where the tables are those of a Citus cluster."""

from collections.abc import Iterator

import psycopg
import pytest

from service.ledger.database import BY_INDEX
from tests.citus.cluster import Citus
from tests.databases import login_url
from tests.statements import PACKAGES, is_of, prepared, sample, statements_of

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def login(citus: Citus) -> Iterator[psycopg.Connection]:
    """Return a connection of the live ledger's login to its node, with our sessions' settings."""
    url = login_url(citus.nodes[citus.node_of("live")].url, "live")
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as one:
        for name, value in {**BY_INDEX, "plan_cache_mode": "force_custom_plan"}.items():
            one.execute("select set_config(%s, %s, false)", [name, value])
        yield one


@pytest.mark.parametrize("package", PACKAGES)
def test_citus_takes_every_statement(login: psycopg.Connection, package: str) -> None:
    """Though it rewrites each; what a sample breaks is a constraint at most."""
    for sql in statements_of(package):
        if not is_of(login, sql, "live"):
            continue
        types = prepared(login, sql, "live")
        if types is None:
            continue
        try:
            given = ", ".join(sample(one) for one in types)
            with login.transaction(force_rollback=True):
                login.execute(f"execute one{f'({given})' if given else ''}".encode())
        except psycopg.IntegrityError:
            pass
        finally:
            login.execute("deallocate one")
