"""What projectors promise about their writes, and how a rebuild applies them."""

import re

import msgspec

from projections.claim_list.projector import CLAIM_LIST
from service.ledger.events import Recorded
from service.ledger.projector import Insert, Update
from service.ledger.rebuild.apply import apply
from service.ledger.sql import queries
from tests.ledger.samples import EVENTS, META, STREAM, sample

SET_STAGE = queries("projections.claim_list").set_stage


def example(cls):
    """Return a sample with hexadecimal hashes, like real ones."""
    event = sample(cls)
    hashes = [name for name in cls.__struct_fields__ if name.endswith("_hash")]
    texts = [name for name in hashes if isinstance(getattr(event, name), str)]
    return msgspec.structs.replace(event, **dict.fromkeys(texts, "c0ffee"))


def projectors(service):
    """Return every projector once."""
    return {model.name: model.projector for model in service.read_models}.values()


def writes_of(projector, event):
    """Return the writes for an event."""
    return list(projector.project(Recorded(1, STREAM, 1, event, META, 1)))


async def test_projectors_declare_tables_topics_and_personal_data(service):
    """The declarations hold for every event of the catalogue."""
    for projector in projectors(service):
        written = set()
        for cls in EVENTS:
            event = example(cls)
            writes = writes_of(projector, event)
            written |= {write.table for write in writes}
            assert cls in projector.topics or not writes, (projector.name, cls)
            if not projector.reads_personal:
                erased = msgspec.structs.replace(event, **dict.fromkeys(cls.personal))
                assert writes_of(projector, erased) == writes, (projector.name, cls)
        assert written == set(projector.tables), projector.name


async def test_a_write_names_its_own_table_alone(service):
    """So it can run on tables of a rebuild or a replay, in any order of tables."""
    for projector in projectors(service):
        for write in (write for cls in EVENTS for write in writes_of(projector, example(cls))):
            named = set(re.findall(r"\bledger\.(\w+)", write.statement.on("ledger")))
            assert named == {write.table.name}, write.statement.name


async def test_insert_arrays_have_the_columns_types(service, owner):
    """No value is converted."""
    query = """
    select attname, format_type(atttypid, null) from pg_attribute
    where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped
    """
    for model in service.read_models:
        for table in model.projector.tables:
            there = dict(owner.execute(query, [f"{model.ledger.name}.{table.name}"]).fetchall())
            there = {
                column: kind.replace("timestamp with time zone", "timestamptz")
                for column, kind in there.items()
            }
            arrays = re.findall(r"::(\w+)\[\]", table.insert.on(model.ledger.name))
            described = dict(zip(table.columns, arrays, strict=True))
            assert described.items() <= there.items(), table.name


async def test_writes_have_the_effect_of_their_order(service):
    """A change before its row has no effect; one after it has.

    Applied by a rebuild, whose inserts go ahead, and in an append's transaction.
    """
    ledger = service.modes["live"].ledger
    writes = [
        Update(CLAIM_LIST, SET_STAGE, ("clm_1", "judgment")),
        Insert(CLAIM_LIST, claim("clm_1")),
        Insert(CLAIM_LIST, claim("clm_2")),
        Update(CLAIM_LIST, SET_STAGE, ("clm_2", "settled")),
        Update(CLAIM_LIST, SET_STAGE, ("clm_2", "closed")),
        Insert(CLAIM_LIST, claim("clm_3")),
    ]
    stages = {"clm_1": "triage", "clm_2": "closed", "clm_3": "triage"}
    async with ledger.transaction() as transaction:
        connection = transaction.connection
        rebuilt = connection.transaction()
        await rebuilt.start()
        assert await apply(connection, "live", writes) == 3
        rows = await connection.fetch("select claim_id, stage from live.claim_list")
        assert dict(map(tuple, rows)) == stages
        await rebuilt.rollback()
        await transaction.write(writes)
        rows = await connection.fetch("select claim_id, stage from live.claim_list")
        assert dict(map(tuple, rows)) == stages


def claim(claim_id):
    """Return a row of `claim_list`."""
    return (claim_id, 1, STREAM, "ptn_1", "ent_1", claim_id, None, "[]", "triage", META.at)
