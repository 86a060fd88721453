"""Requests of the reference in the words of the client libraries (`clients/`)."""

import json
import re
from collections.abc import Mapping
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


def python(endpoint: Endpoint, document: Json, given: Json) -> str:
    """Return the call in Python; `given` is the body, or the parameters."""
    lines = ["import os", "", "from claim_ledger_client import Client"]
    if endpoint.body:
        schemas = document["components"]["schemas"]
        names: dict[str, None] = {}
        name = endpoint.body.__name__
        argument = _constructed(name, given, schemas[name], schemas, names, indent=2)
        lines += ["from claim_ledger_client.models import " + ", ".join(sorted(names))]
        if "date.fromisoformat" in argument:
            lines.insert(1, "from datetime import date")
    else:
        argument = ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
    return "\n".join(
        [
            *lines,
            "",
            'key, url = os.environ["CLAIMS_API_KEY"], os.environ["CLAIMS_API_URL"]',
            "with Client(key, base_url=url) as client:",
            f"    answer = client.{PYTHON[endpoint.id]}({argument})",
        ]
    )


def typescript(endpoint: Endpoint, given: Json) -> str:
    """Return the call in TypeScript."""
    first, *others = endpoint.id.split("_")
    method = first + "".join(word.capitalize() for word in others)
    argument = _IDENTIFIER.sub(r"\1:", json.dumps(given, indent=2, ensure_ascii=False))
    return "\n".join(
        [
            'import { ClaimLedger } from "claim-ledger-client";',
            "",
            "const { CLAIMS_API_KEY, CLAIMS_API_URL } = process.env;",
            "const client = new ClaimLedger(CLAIMS_API_KEY, { baseUrl: CLAIMS_API_URL });",
            f"const answer = await client.{method}({argument if given else ''});",
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
