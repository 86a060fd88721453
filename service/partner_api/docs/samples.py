"""Requests of the reference in the words of the client libraries (`clients/`)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.partner_api.docs.examples import resolved
from service.partner_api.endpoints import Endpoint

Json = dict[str, Any]

PYTHON: Final[Mapping[str, str]] = {
    "start_onboarding": "onboardings.create",
    "request_connection": "connect_requests.create",
    "mint_upload_url": "documents.mint_upload_url",
    "create_claim": "claims.create",
    "get_claim": "claims.get",
    "list_claims": "claims.page",
    "list_events": "events.page",
}
"""The method of the Python client for each endpoint."""

_WIDTH: Final = 88
_IDENTIFIER: Final = re.compile(r'"([A-Za-z_]\w*)":')


def python(
    endpoint: Endpoint, document: Json, parameters: Sequence[Json], body: Json | None
) -> str:
    """Return the call in Python with these of the operation's parameters, as their examples are.

    Its method takes the parts of the path, then the body, then the query's parameters by name.
    """
    lines = ["import os", "", "from claim_ledger_client import Client"]
    arguments = [json.dumps(one["example"]) for one in parameters if one["in"] == "path"]
    if endpoint.body and body is not None:
        schemas = document["components"]["schemas"]
        names: dict[str, None] = {}
        name = endpoint.body.__name__
        made = _constructed(name, body, schemas[name], schemas, names, indent=2)
        lines += ["from claim_ledger_client.models import " + ", ".join(sorted(names))]
        if "date.fromisoformat" in made:
            lines.insert(1, "from datetime import date")
        arguments.append(made)
    arguments += [
        f"{one['name']}={json.dumps(one['example'])}" for one in parameters if one["in"] == "query"
    ]
    return "\n".join(
        [
            *lines,
            "",
            'key, url = os.environ["CLAIMS_API_KEY"], os.environ["CLAIMS_API_URL"]',
            "with Client(key, base_url=url) as client:",
            f"    answer = client.{PYTHON[endpoint.id]}({', '.join(arguments)})",
        ]
    )


def typescript(endpoint: Endpoint, parameters: Sequence[Json], body: Json | None) -> str:
    """Return the call in TypeScript.

    Its method takes all parameters as one object, then the body (`scripts/generate.mjs`).
    """
    first, *others = endpoint.id.split("_")
    method = first + "".join(word.capitalize() for word in others)
    given: list[Json] = []
    if parameters or (endpoint.query and endpoint.body):
        given.append({one["name"]: one["example"] for one in parameters})
    if body is not None:
        given.append(body)
    arguments = [
        _IDENTIFIER.sub(r"\1:", json.dumps(one, indent=2, ensure_ascii=False)) for one in given
    ]
    return "\n".join(
        [
            'import { ClaimLedger } from "claim-ledger-client";',
            "",
            "const { CLAIMS_API_KEY, CLAIMS_API_URL } = process.env;",
            "const client = new ClaimLedger(CLAIMS_API_KEY, { baseUrl: CLAIMS_API_URL });",
            f"const answer = await client.{method}({', '.join(arguments)});",
        ]
    )


def _constructed(
    name: str, value: Json, schema: Json, schemas: Json, names: dict[str, None], indent: int
) -> str:
    """Return the call that makes a model, over several lines where one is too short."""
    names[name] = None
    fields = [
        f"{field}={_value(one, schema['properties'][field], schemas, names, indent)}"
        for field, one in value.items()
    ]
    line = f"{name}({', '.join(fields)})"
    if len(line) + 4 * indent <= _WIDTH and "\n" not in line:
        return line
    pad = "    " * indent
    return (
        f"{name}(\n" + "".join(f"{pad}{field},\n" for field in fields) + "    " * (indent - 1) + ")"
    )


def _value(value: Any, schema: Json, schemas: Json, names: dict[str, None], indent: int) -> str:  # noqa: ANN401 - any JSON
    whole = resolved(schema, schemas)
    if isinstance(value, list) and "items" in whole:
        items = ", ".join(_value(one, whole["items"], schemas, names, indent) for one in value)
        return f"[{items}]"
    if isinstance(value, dict) and "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _constructed(name, value, whole, schemas, names, indent + 1)
    if whole.get("format") == "date":
        return f'date.fromisoformat("{value}")'
    return repr(value) if not isinstance(value, str) else json.dumps(value, ensure_ascii=False)
