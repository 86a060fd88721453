"""A ledger on a node of a Citus cluster is compared with what migrations make, as is its shard."""

from migrations.snapshots import Definition
from service.evidence.verify.shards import Shard, as_migrated, on_node

SHARDS = [Shard("log", "102", is_here=True), Shard("events", "1021", is_here=True)]
TRIGGER = "CREATE TRIGGER append_only{} BEFORE DELETE ON {{ledger}}.log{} FOR EACH STATEMENT A"
OF_CITUS = (
    "CREATE TRIGGER truncate_trigger_17 AFTER TRUNCATE ON {ledger}.log FOR EACH STATEMENT"
    " EXECUTE FUNCTION citus_truncate_trigger() O"
)
MADE = {
    Definition("log", "relation", "table"),
    Definition("log", "column", "position bigint not null identity a"),
    Definition("log", "trigger", TRIGGER.format("", "")),
    Definition("log", "constraint", "bounded CHECK ((position > 0)) NOT VALID"),
    Definition("log", "constraint", "a_fkey FOREIGN KEY (a) REFERENCES {ledger}.events(a)"),
    Definition("log_seq", "sequence", "bigint 1 1 1 9223372036854775807 1 f"),
    Definition("write", "function", "sha256:00"),
}
FOUND = {
    Definition("log", "relation", "table"),
    Definition("log", "column", "position bigint not null identity a"),
    Definition("log", "trigger", TRIGGER.format("", "")),
    Definition("log", "trigger", OF_CITUS),
    Definition("log", "constraint", "bounded CHECK ((position > 0))"),
    Definition("log", "constraint", "a_fkey FOREIGN KEY (a) REFERENCES {ledger}.events(a)"),
    Definition("log_seq", "sequence", "bigint 281474976710657 1 1 562949953421313 1 f"),
    Definition("log_102", "relation", "table"),
    Definition("log_102", "column", "position bigint not null"),
    Definition("log_102", "trigger", TRIGGER.format("_102", "_102")),
    Definition("log_102", "constraint", "bounded CHECK ((position > 0))"),
    Definition(
        "log_102", "constraint", "a_fkey_102 FOREIGN KEY (a) REFERENCES {ledger}.events_1021(a)"
    ),
    Definition("write", "function", "sha256:00"),
}


def difference(found):
    """Return what is wanted and lacking, or there and not wanted."""
    made, there = on_node(MADE, frozenset(found), SHARDS)
    return made ^ there


def test_a_shard_has_what_its_table_has():
    """Under names that end in its number; identities, ranges and checked constraints differ."""
    assert not difference(FOUND)


def test_what_a_table_or_its_shard_lacks_or_has_beside_differs():
    """Each definition counts, but the trigger of Citus; a table that is no shard has a name so."""
    for one in FOUND - {Definition("log", "trigger", OF_CITUS)}:
        assert difference(FOUND - {one})
    for more in (
        Definition("log_103", "relation", "table"),
        Definition("log_102", "trigger", TRIGGER.format("_9", "_102")),
        Definition("log", "trigger", OF_CITUS.replace("AFTER", "BEFORE")),
        Definition("log_seq", "sequence", "bigint 1 -1 1 9 1 f"),
    ):
        assert difference(FOUND | {more}), more


def test_a_function_is_the_one_that_was_made_however_it_is_planned():
    """`functions.sql` has it planned at each call; of other settings, nothing is passed over."""
    forced, made = (f"{{plan_cache_mode=force_{one}_plan}}" for one in ("custom", "generic"))
    rows = [("write", "function", forced), ("log", "column", forced)]
    assert as_migrated(rows) == [("write", "function", made), ("log", "column", forced)]
