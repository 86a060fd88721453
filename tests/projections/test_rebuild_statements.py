"""What a rebuild takes from projectors and their statements."""

import msgspec
import pytest

from service.app.bootstrap import Service
from service.ledger.events import Recorded
from service.ledger.ledger import Write
from service.ledger.rebuild.apply import apply
from service.ledger.rebuild.statements import plain_insert, table_of
from service.ledger.sql import Sql, queries
from tests.ledger.samples import EVENTS, META, STREAM, sample
from tests.world import settings_for

PLAIN = {
    "projections.activity insert": "activity",
    "projections.claim_documents insert": "claim_documents",
    "projections.claim_list insert": "claim_list",
    "projections.connect_links insert": "connect_links",
    "projections.connections insert_entity": "entities",
    "projections.onboardings insert": "onboardings",
    "projections.partners insert_key": "api_keys",
    "projections.partners insert_partner": "partners",
}
OTHERS = {
    "projections.claim_list set_stage": "claim_list",
    "projections.connections connect": "connections",
    "projections.connections disconnect": "connections",
    "projections.connections establish": "entities",
    "projections.partners set_settings": "partners",
}


def named(where: str) -> Sql:
    """Return a statement by `<package> <name>`."""
    package, _, name = where.partition(" ")
    return queries(package)[name]


INSERT = queries("projections.claim_list").insert
SET_STAGE = queries("projections.claim_list").set_stage


@pytest.fixture
async def service(database_url, tmp_path):
    """Return the parts, on a database of the test's own."""
    async with Service(settings_for(database_url, tmp_path)).opened() as one:
        yield one


def example(cls):
    """Return a sample whose hashes are hexadecimal, as real ones are."""
    event = sample(cls)
    hashes = [name for name in cls.__struct_fields__ if name.endswith("_hash")]
    texts = [name for name in hashes if isinstance(getattr(event, name), str)]
    return msgspec.structs.replace(event, **dict.fromkeys(texts, "c0ffee"))


def projectors(service):
    """Return every projector once."""
    return {model.name: model.projector for model in service.read_models}.values()


def writes_of(projector, event):
    """Return what an event changes."""
    return list(projector.project(Recorded(1, STREAM, 1, event, META, 1)))


@pytest.mark.parametrize("where", sorted(PLAIN))
def test_a_statement_that_only_inserts_is_loaded_by_copy(where):
    """Its table and columns are read from its text."""
    insert = plain_insert(named(where))
    assert insert is not None
    assert (insert.table, len(insert.columns) > 3) == (PLAIN[where], True)
    assert all(column.isidentifier() for column in insert.columns)


@pytest.mark.parametrize("where", sorted(OTHERS))
def test_a_statement_that_does_more_is_run_as_it_is(where):
    """Updates and upserts are none of those; their table is known."""
    statement = named(where)
    assert plain_insert(statement) is None
    assert table_of(statement) == OTHERS[where]


async def test_projectors_say_what_is_true_of_them(service):
    """Tables, topics and whether anything personal is read hold for every event there is."""
    for projector in projectors(service):
        for cls in EVENTS:
            event = example(cls)
            writes = writes_of(projector, event)
            tables = {table_of(write.statement) for write in writes}
            assert tables <= set(projector.tables), projector.name
            topics = getattr(projector, "topics", ()) or EVENTS
            assert cls in topics or not writes, (projector.name, cls)
            if not getattr(projector, "reads_personal", True):
                erased = msgspec.structs.replace(event, **dict.fromkeys(cls.personal))
                assert writes_of(projector, erased) == writes, (projector.name, cls)


async def test_every_table_of_a_read_model_is_written_by_some_event(service):
    """No projector claims a table that it does not make."""
    for projector in projectors(service):
        written = {
            table_of(write.statement)
            for cls in EVENTS
            for write in writes_of(projector, example(cls))
        }
        assert written == set(projector.tables), projector.name


async def test_writes_have_the_effect_of_their_order(service):
    """A change that came before its row met nothing; one that came after it counts."""
    ledger = service.modes["live"].ledger
    writes = [
        Write(SET_STAGE, ("clm_1", "judgment")),
        Write(INSERT, claim("clm_1")),
        Write(INSERT, claim("clm_2")),
        Write(SET_STAGE, ("clm_2", "settled")),
        Write(SET_STAGE, ("clm_2", "closed")),
        Write(INSERT, claim("clm_3")),
    ]
    async with ledger.database.transaction() as connection:
        assert await apply(connection, "live", writes) == 3
        rows = await connection.fetch("select claim_id, stage from live.claim_list order by 1")
    stages = {row["claim_id"]: row["stage"] for row in rows}
    assert stages == {"clm_1": "triage", "clm_2": "closed", "clm_3": "triage"}


def claim(claim_id):
    """Return a row of `claim_list`."""
    return (claim_id, 1, STREAM, "ptn_1", "ent_1", claim_id, None, "[]", "triage", META.at)
