"""The accounts of a run: what clients were told, beside what the ledger and the store have."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg

from tests.soak.history import History

SERVICE = (sys.executable, "-c", "from service.cli import main; main()")
"""`claim-ledger`, before its arguments."""
_ROWS = """
select l.claim_id, count(e.append_id)
from live.claim_list as l
left join live.events as e on e.originator_id = l.stream_id and e.topic = 'ClaimCreated'
group by l.claim_id
"""
_TWICE = """
select count(*) from (
    select from live.claim_list group by partner_id, entity_id, partner_claim_id having count(*) > 1
) as twice
"""
_DOCUMENTS = """
select l.claim_id, d.document ->> 'storage_path'
from live.claim_list as l
join live.events as e on e.originator_id = l.stream_id and e.topic = 'DocumentsAttached',
    jsonb_array_elements(convert_from(e.state, 'UTF8')::jsonb -> 'data' -> 'documents')
        as d (document)
"""


def value(url: str, query: str) -> Any:
    """Return the single value of a query."""
    ((found,),) = _rows(url, query)
    return found


def statuses(history: History) -> dict[str, int]:
    """Return how often each operation had each answer."""
    counted: dict[str, int] = defaultdict(int)
    for one in history.operations:
        counted[f"{one['op']} {one['status'] or 'no answer'}"] += 1
    return dict(sorted(counted.items()))


def claims(url: str, history: History) -> dict[str, int]:
    """Compare the claims that were acknowledged with the ledger."""
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in _acknowledged(history):
        ids[one["entity"], one["key"]].add(one["claim_id"])
    events = dict(_rows(url, _ROWS))
    acknowledged = {claim_id for found in ids.values() for claim_id in found}
    return {
        "acknowledged": len(acknowledged),
        "lost": sum(events.get(claim_id, 0) == 0 for claim_id in acknowledged),
        "doubled": sum(len(found) > 1 for found in ids.values())
        + sum(count > 1 for count in events.values())
        + value(url, _TWICE),
    }


def documents(url: str, history: History, environment: Mapping[str, str]) -> dict[str, int]:
    """Compare what acknowledged claims refer to with their streams, and those with the store."""
    attached: dict[str, list[str]] = defaultdict(list)
    for claim_id, path in _rows(url, _DOCUMENTS):
        attached[claim_id].append(path)
    asked = {one["claim_id"]: one["documents"] for one in _acknowledged(history)}
    sent = {one["key"] for one in history.operations if one["op"] == "put"}
    return {
        "acknowledged": sum(map(bool, asked.values())),
        "lost": sum(attached.get(claim_id, []) != paths for claim_id, paths in asked.items()),
        "never_uploaded": sum(not sent.issuperset(paths) for paths in attached.values()),
        "not_in_store": len(_command(environment, "documents", "verify")["findings"]),
    }


def diverged(environment: Mapping[str, str]) -> int:
    """Return in how many rows the read models differ from what a replay of the logs makes."""
    done = _command(environment, "projections", "rebuild", "--all", "--if-equal")
    return sum(row["differences"] for row in done["rebuilt"])


def _acknowledged(history: History) -> Iterator[dict[str, Any]]:
    for one in history.operations:
        if one["op"] == "create_claim" and one["status"] in {200, 201}:
            yield one


def _command(environment: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Return the answer of a command that may report findings by its exit code."""
    done = subprocess.run(
        [*SERVICE, *words, "--json"], env=environment, capture_output=True, check=False
    )
    assert done.stdout, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as owner:
        return owner.execute(query.encode()).fetchall()
