"""The yardstick: pgbench running the statements of `POST /claims`, from the service's files."""

import re
import subprocess
from pathlib import Path

import psycopg

from projections.claim_list.projector import CLAIM_LIST
from service.cli.dev.postgres.binaries import wheel_bin_dir
from service.ledger.sql import Sql, queries
from service.ledger.writing import statement_for

_STREAM = "(lpad(to_hex(:a::bigint), 16, '0') || lpad(to_hex(:b::bigint), 16, '0'))::uuid"
_NUMBERED = "('{}_' || lpad(:p::text, 26, '0'))"
_PARTNER, _ENTITY = (_NUMBERED.format(prefix) for prefix in ("ptn", "ent"))
_NTH_STREAM = "lpad(to_hex(:p::bigint), 32, '0')::uuid"
NUMBER_STREAMS = """
alter table live.events disable trigger append_only;
update live.events as e set originator_id = lpad(to_hex(c.nr), 32, '0')::uuid
from (
    select append_id, row_number() over (order by append_id) as nr
    from live.events where topic = 'EntityConnected'
) as c
where c.append_id = e.append_id;
alter table accounts.events disable trigger append_only;
update accounts.events as e set originator_id = lpad(to_hex(p.nr), 32, '0')::uuid
from (
    select originator_id, row_number() over (order by append_id) as nr
    from accounts.events where topic = 'PartnerApplied'
) as p
where p.originator_id = e.originator_id
"""
"""So that pgbench can name them: partners, entities and connections come in one order."""
# Ordered by time as the service's ids are, so that indexes grow at their right edge.
_CLAIM_ID = (
    "('clm_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')"
    " || left(replace(gen_random_uuid()::text, '-', ''), 14))"
)


def script() -> str:
    """Return pgbench's script: authentication's read, what the decision rests on, the write."""
    return "\n".join([
        r"\set p random(1, :partners)",
        r"\set a random(0, 9223372036854775806)",
        r"\set b random(0, 9223372036854775806)",
        _sql(queries("projections.partners").last_events, "accounts", [
            f"array[{_NTH_STREAM}]",
        ]) + ";",
        _sql(queries("service.claims").context, "live", [
            f"array[{_ENTITY}]", f"array[{_NTH_STREAM}]", f"array[{_STREAM}]", "''::bytea",
        ]) + ";",
        _sql(statement_for((CLAIM_LIST,)), "live", [
            "1",
            "array[hashtextextended(:p::text, 0), :b::bigint]",
            f"array[{_NTH_STREAM}, {_STREAM}]", "array[1, 0]", "array[false, true]", "array[1, 1]",
            "array[]::text[]", "array[]::int[]",
            f"array[{_STREAM}, {_STREAM}]",
            "array[1, 2]",
            "array['ClaimCreated', 'FirstMessagePosted']",
            "array[convert_to(:created, 'UTF8'), convert_to(:posted, 'UTF8')]",
            # As long as theirs. Nobody numbers these events: no service runs on this database.
            "array[decode(repeat('00', 33), 'hex'), decode(repeat('00', 33), 'hex')]",
            "array[1, 1]",
            f"array[{_CLAIM_ID}]", "array[1]",
            f"array[{_STREAM}]", r"array[decode(:wrapped, 'hex')]", "array['0123456789abcdef']",
            "array[1]",
            "array[1]",
            f"array[{_CLAIM_ID}]", "array[1]", f"array[{_STREAM}]",
            f"array[{_PARTNER}]", f"array[{_ENTITY}]",
            f"array[({_STREAM})::text]", "array['user-17']", """array['["inv-1"]']""",
            "array['triage']", "array[now()]",
        ]) + ";",
    ]) + "\n"  # fmt: skip


def _sql(sql: Sql, schema: str, values: list[str]) -> str:
    """Return a statement of the service with pgbench's expressions in place of parameters."""
    text = re.sub(r"^\s*--.*$", "", sql.on(schema), flags=re.MULTILINE).strip()
    return re.sub(r"\$(\d+)", lambda found: values[int(found[1]) - 1], text)


def payload(url: str) -> dict[str, str]:
    """Return what the service stored for one claim, so that pgbench stores as much."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select convert_from(a.state, 'UTF8'), convert_from(b.state, 'UTF8'),"
            " encode(k.wrapped, 'hex')"
            " from live.events a join live.events b using (originator_id)"
            " join live.data_keys k on k.key_id = a.originator_id"
            " where a.topic = 'ClaimCreated' and b.topic = 'FirstMessagePosted' limit 1"
        ).fetchall()
    return dict(zip(("created", "posted", "wrapped"), rows[0], strict=True))


def run_pgbench(
    url: str, path: Path, given: dict[str, str], clients: int, seconds: int
) -> tuple[float, float]:
    """Return transactions per second and their mean latency in milliseconds."""
    variables = [word for name, value in given.items() for word in ("-D", f"{name}={value}")]
    said = subprocess.run(
        [
            *(str(wheel_bin_dir() / "pgbench"), "--no-vacuum", "--protocol=prepared"),
            *(f"--client={clients}", f"--jobs={min(clients, 2)}", f"--time={seconds}"),
            *("--file", str(path), *variables, url),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds + 30,
    )
    tps = re.search(r"^tps = ([\d.]+)", said.stdout, re.MULTILINE)
    latency = re.search(r"^latency average = ([\d.]+)", said.stdout, re.MULTILINE)
    failed = re.search(r"^number of failed transactions: 0 ", said.stdout, re.MULTILINE)
    if said.returncode or not tps or not latency or not failed:
        raise RuntimeError(f"pgbench: {said.stderr[-2000:]}{said.stdout[-2000:]}")
    return float(tps[1]), float(latency[1])
