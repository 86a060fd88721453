"""What each named statement does in the ledger in memory: the tables, the reads and the writes."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from service.ledger.database import AlreadyExists

_DEFAULTS: dict[str, dict[str, object]] = {
    "partners": {
        "return_link": False,
        "suppress_email": False,
        "sandbox_epoch": 0,
        "sandbox_reset_at": None,
    },
    "api_keys": {"revoked_at": None, "revoked_later": False},
    "members": {"removed_at": None},
    "staff": {"removed_at": None},
    "onboardings": {"completed_at": None},
    "connect_links": {"entity_id": None},
    "connections": {"disconnected_at": None},
}

Values = dict[str, Any]


class Tables:
    """The tables of one schema, and a log that undoes the changes of a transaction."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Values]] = {}
        self.undo: list[Callable[[], None]] = []
        self._append_id = 0

    def __getitem__(self, table: str) -> list[Values]:
        return self.rows.setdefault(table, [])

    def insert(self, table: str, unique: Sequence[str], **values: Any) -> None:
        """Add a row; `unique` columns identify it."""
        for row in self[table]:
            if unique and all(row[name] == values[name] for name in unique):
                raise AlreadyExists(f"{table}_pkey")
        row = _DEFAULTS.get(table, {}) | values
        self[table].append(row)
        self.undo.append(lambda: self[table].remove(row))

    def change(self, row: Values, **values: Any) -> None:
        """Update a row."""
        before = dict(row)
        row.update(values)
        self.undo.append(lambda: row.update(before))

    def where(self, table: str, **values: Any) -> list[Values]:
        """Return the rows with these values."""
        return [row for row in self[table] if all(row[name] == one for name, one in values.items())]

    def next_append_id(self) -> int:
        """Draw an append_id."""
        self._append_id += 1
        return self._append_id


def _write(tables: Tables, commands: int, *arrays: Sequence[Any]) -> list[Values]:
    """Do what the function `write` does; no other command runs meanwhile, so none is locked."""
    guards, uploads, events, ids, keys = (
        list(zip(*arrays[first:last], strict=True))
        for first, last in ((0, 5), (5, 7), (7, 13), (13, 15), (15, 19))
    )
    outcomes = ["written"] * commands
    for _, stream, version, own, nr in sorted(guards, key=lambda guard: guard[3]):
        grown = {"originator_id": stream, "originator_version": version + 1}
        if outcomes[nr - 1] == "written" and tables.where("events", **grown):
            outcomes[nr - 1] = "conflict" if own else "moved"
    for path, nr in uploads:
        if not tables.where("uploads", storage_path=path, swept_at=None):
            outcomes[nr - 1] = "upload_gone"
    drawn = [tables.next_append_id() if outcomes[event[-1] - 1] == "written" else None
             for event in events]  # fmt: skip
    columns = ("append_id", "originator_id", "originator_version", "topic", "state", "mac")
    rows = [(append_id, *event) for append_id, event in zip(drawn, events, strict=True)]
    _add(tables, "events", columns, columns[1:3], outcomes, rows)
    _add(tables, "public_ids", ["public_id"], ["public_id"], outcomes, ids)
    columns = ("key_id", "wrapped", "master_key_id")
    _add(tables, "data_keys", columns, columns[:1], outcomes, keys)
    return [{"outcomes": outcomes, "append_ids": drawn}]


def _add(
    tables: Tables,
    table: str,
    columns: Sequence[str],
    unique: Sequence[str],
    outcomes: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Add the rows of the commands that are written; `unique` columns identify one."""
    for *values, nr in rows:
        if outcomes[nr - 1] == "written":
            tables.insert(table, unique, **dict(zip(columns, values, strict=True)))


def _stream(tables: Tables, stream: object) -> Iterator[Values]:
    columns = ("append_id", "originator_version", "topic", "state", "mac")
    found = tables.where("events", originator_id=stream)
    for row in sorted(found, key=lambda row: row["originator_version"]):
        yield {name: row[name] for name in columns}


def _stream_on(
    tables: Tables, stream: object, version: int, topics: Sequence[str] | None, limit: int
) -> list[Values]:
    found = [row for row in _stream(tables, stream) if row["originator_version"] >= version]
    return [row for row in found if topics is None or row["topic"] in topics][:limit]


def _last_events(tables: Tables, streams: Sequence[object]) -> Iterator[Values]:
    for stream in streams:
        *_, last = {"append_id": None, "mac": None}, *_stream(tables, stream)
        yield {"append_id": last["append_id"], "mark": last["mac"]}


def _exists(tables: Tables, stream: object) -> list[Values]:
    return [{"begun": bool(tables.where("events", originator_id=stream, originator_version=1))}]


def _data_keys(tables: Tables, asked: Sequence[object]) -> list[Values]:
    return [
        row
        for row in tables["data_keys"]
        if row["key_id"] in asked
        and not tables.where("events", originator_id=row["key_id"], topic="PersonalDataErased")
    ]


def _draw_secrets(
    tables: Tables,
    names: Sequence[str],
    wrapped: Sequence[bytes],
    master: str,
    since_start: bytes,
) -> list[Values]:
    if not tables["event_keys"]:
        row: Values = {"key_id": 1, "since_start": True, "wrapped": since_start}
        tables.insert("event_keys", ["key_id"], **row, master_key_id=master)
        for name, one in zip(names, wrapped, strict=True):
            row = {"name": name, "wrapped": one, "master_key_id": master}
            tables.insert("service_keys", ["name"], **row)
    return []


def _pending_of_address(tables: Tables, hashed: bytes) -> Iterator[Values]:
    for member in tables.where("members", address_hash=hashed, removed_at=None):
        wanted = {"partner_id": member["partner_id"], "applied_at": member["added_at"]}
        if tables.where("partners", status="pending", **wanted):
            yield {"partner_id": member["partner_id"]}


def _members_of(tables: Tables, **values: object) -> Iterator[Values]:
    for member in tables.where("members", removed_at=None, **values):
        for partner in tables.where("partners", partner_id=member["partner_id"]):
            yield member | partner


def _partners_of_address(tables: Tables, hashed: bytes, limit: int) -> list[Values]:
    found = [
        row | {"is_own": row["status"] == "approved" or row["added_at"] == row["applied_at"]}
        for row in _members_of(tables, address_hash=hashed)
    ]
    return sorted(found, key=lambda row: (not row["is_own"], row["partner_id"]))[:limit]


def _moments_of_keys(tables: Tables, key_ids: Sequence[object]) -> Iterator[Values]:
    for key_id in key_ids:
        (row,) = tables.where("api_keys", key_id=key_id) or [{}]
        moments = {name: row.get(name) for name in ("issued_at", "revoked_at")}
        yield moments | {"key_id": key_id, "used_at": None}


def _access(tables: Tables, connection: object, entity_id: object) -> Values:
    """Return an entity, and the last event of a connection."""
    events = tables.where("events", originator_id=connection)
    last = max(events, key=lambda event: event["originator_version"], default={})
    (entity,) = tables.where("entities", entity_id=entity_id) or [{}]
    return {
        **{name: entity.get(name) for name in ("entity_id", "name", "established")},
        **{name: last.get(name) for name in ("topic", "state", "mac")},
        "connection_id": last.get("append_id"),
        "connection_position": None,  # nobody numbers what is in the memory
        "version": last.get("originator_version"),
    }


def _established(tables: Tables, email_hash: object, number_hash: object) -> list[Values]:
    sought = {"email_hash": email_hash, "company_number_hash": number_hash}
    taken = any(
        tables.where("entities", established=True, **{column: value})
        for column, value in sought.items()
        if value is not None
    )
    return [{"taken": taken}]


def _onboarding_context(
    tables: Tables,
    stream: object,
    partner_id: object,
    email_hash: object,
    number_hash: object,
    _retired: bytes,
) -> list[Values]:
    found: Values = {"now": datetime.now(UTC)} | _established(tables, email_hash, number_hash)[0]
    names = ("key_id", "wrapped", "master_key_id")
    found |= dict.fromkeys((*names, "disconnected_at")) | _made({})
    for event in tables.where("events", originator_id=stream, originator_version=1):
        found |= _made(event)
    for onboarding in tables.where("onboardings", stream_id=stream):
        entity_id = onboarding["entity_id"]
        (entity,) = tables.where("entities", entity_id=entity_id)
        for link in tables.where("connections", entity_id=entity_id, partner_id=partner_id):
            found["disconnected_at"] = link["disconnected_at"]
        for key in tables.where("data_keys", key_id=entity["stream_id"]):
            found |= {name: key[name] for name in names}
    return [found]


def _made(first: Values) -> Values:
    """Return the event that begins a stream, as contexts have it."""
    return {
        "made_id": first.get("append_id"),
        "made": first.get("state"),
        "made_mac": first.get("mac"),
        "made_position": None,
    }


def _link(tables: Tables, hashed: bytes) -> list[Values]:
    now = datetime.now(UTC)
    found = tables.where("connect_links", token_hash=hashed)
    return [row | {"expired": row["expires_at"] <= now} for row in found if row["expires_at"]]


def _claims_context(
    tables: Tables,
    entity_ids: Sequence[Any],
    connections: Sequence[Any],
    streams: Sequence[Any],
    _retired: bytes,
) -> Iterator[Values]:
    for entity_id, connection, stream in zip(entity_ids, connections, streams, strict=True):
        made = tables.where("events", originator_id=stream, originator_version=1)
        (key,) = tables.where("data_keys", key_id=stream) or [{}]
        sealed = {name: key.get(name) for name in ("key_id", "wrapped", "master_key_id")}
        access = _access(tables, connection, entity_id)
        (first,) = made or [{}]
        yield access | _made(first) | sealed


def _events_of(tables: Tables, topic: object) -> Iterator[Values]:
    names = ("append_id", "originator_id", "originator_version", "topic", "state")
    for row in tables.where("events", topic=topic):
        yield {name: row[name] for name in names}


def _state(tables: Tables, connection: object, entity_id: object, _retired: bytes) -> list[Values]:
    found = _access(tables, connection, entity_id)
    entities = tables.where("entities", entity_id=entity_id)
    return [found | {"erased": one["email_hash"] is None} for one in entities]


READS: dict[str, Callable[..., Any]] = {
    "service.ledger write": _write,
    "service.ledger stream": _stream,
    "service.ledger stream_on": _stream_on,
    "service.ledger exists": _exists,
    "service.ledger bound": lambda *_: [],  # no log of the memory is older than the MACs
    "service.ledger positions": lambda *_: [],  # nobody numbers what is in the memory
    "service.ledger data_keys": _data_keys,
    "service.ledger lock": lambda *_: [],  # no other transaction runs meanwhile
    "service.ledger lock_shared": lambda *_: [],
    "service.ledger now": lambda _: [{"now": datetime.now(UTC)}],
    "service.ledger any_event": lambda tables: tables["events"][:1],
    "service.ledger service_keys_insert": _draw_secrets,
    "service.ledger service_keys": lambda tables, _names: tables["service_keys"],
    "service.ledger event_keys": lambda tables: [
        row | {"may_sign": True} for row in tables["event_keys"]
    ],
    "service.partners pending_of_address": _pending_of_address,
    "service.claims context": _claims_context,
    "service.onboardings context": _onboarding_context,
    "projections.partners list_members": lambda tables, partner_id: _members_of(
        tables, partner_id=partner_id
    ),
    "projections.partners list_partners": lambda tables, partner_id: [
        row for row in tables["partners"] if partner_id in {None, row["partner_id"]}
    ],
    "projections.partners member": lambda tables, partner_id, hashed: _members_of(
        tables, partner_id=partner_id, address_hash=hashed
    ),
    "projections.partners partners_of_address": _partners_of_address,
    "projections.partners last_events": _last_events,
    "projections.partners moments_of_keys": _moments_of_keys,
    "projections.partners sandbox": lambda tables, partner_id: [
        {name: row[name] for name in ("sandbox_epoch", "sandbox_reset_at")}
        for row in tables.where("partners", partner_id=partner_id)
    ],
    "service.people list": lambda tables: sorted(
        tables.where("staff", removed_at=None), key=lambda row: row["added_at"]
    ),
    "projections.onboardings by_link": lambda tables, hashed: tables.where(
        "onboardings", magic_link_hash=hashed
    ),
    "projections.connections state": _state,
    "projections.connections established": _established,
    "projections.connect_links by_token": _link,
    "projections.claim_list by_id": lambda tables, claim_id: tables.where(
        "claim_list", claim_id=claim_id
    ),
    "tests.contract events_of": _events_of,
}


def _set(table: str, key: str, *columns: str) -> Callable[..., None]:
    """Return an update that sets values in the row with this key."""

    def update(tables: Tables, found_by: object, *values: object) -> None:
        for row in tables.where(table, **{key: found_by}):
            tables.change(row, **dict(zip(columns, values, strict=False)))

    return update


def _revoke_key(tables: Tables, key_id: object, at: datetime, later: bool) -> None:
    for row in tables.where("api_keys", key_id=key_id):
        before = row["revoked_at"]
        tables.change(
            row,
            revoked_at=at if before is None else min(before, at),
            revoked_later=later and (before is None or row["revoked_later"]),
        )


def _connect(
    tables: Tables, partner_id: object, entity_id: object, version: int, at: object
) -> None:
    for row in tables.where("connections", partner_id=partner_id, entity_id=entity_id):
        tables.change(row, version=version, connected_at=at, disconnected_at=None)


def _disconnect(
    tables: Tables, partner_id: object, entity_id: object, version: int, at: object
) -> None:
    for row in tables.where("connections", partner_id=partner_id, entity_id=entity_id):
        tables.change(row, version=version, disconnected_at=at)


def _complete(tables: Tables, onboarding_id: object, at: object) -> None:
    for row in tables.where("onboardings", onboarding_id=onboarding_id):
        tables.change(row, state="completed", completed_at=at)


def _establish(tables: Tables, entity_id: object) -> None:
    for row in tables.where("entities", entity_id=entity_id):
        tables.change(row, established=True)


WRITES: dict[str, Callable[..., None]] = {
    "projections.partners set_status": _set("partners", "partner_id", "status"),
    "projections.partners set_settings": _set(
        "partners", "partner_id", "return_link", "suppress_email"
    ),
    "projections.partners remove_member": _set("members", "member_id", "removed_at"),
    "projections.partners reset_sandbox": _set(
        "partners", "partner_id", "sandbox_epoch", "sandbox_reset_at"
    ),
    "projections.partners revoke_key": _revoke_key,
    "projections.partners rebind_key": _set("api_keys", "key_id", "secret_hash", "hash_version"),
    "projections.staff remove": _set("staff", "staff_id", "removed_at"),
    "projections.onboardings complete": _complete,
    "projections.connections establish": _establish,
    "projections.connections correct_entity": _set(
        "entities", "entity_id", "name", "company_number_hash"
    ),
    "projections.connections choose_stage_mails": _set("entities", "entity_id", "stage_mails"),
    "projections.connections connect": _connect,
    "projections.connections disconnect": _disconnect,
    "projections.endpoints rotate": _set("webhook_endpoints", "endpoint_id", "secret_version"),
    "projections.endpoints disable": _set("webhook_endpoints", "endpoint_id", "disabled"),
    "projections.connect_links settle": _set("connect_links", "link_id", "state", "entity_id"),
    "projections.claim_list set_stage": _set("claim_list", "claim_id", "stage"),
}
