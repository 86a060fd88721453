"""A Postman collection (v2.1), made from the OpenAPI document: each operation with its example.

The calls can be made one after another, as they stand: an upload URL is followed by the upload,
and a claim refers to it. What an answer gives for a later call is kept in a variable of the
collection. Converters that there are make neither checks nor variables, and draw new ids each time.
"""

import json
from typing import Any, Final

Json = dict[str, Any]

_FORMAT: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_GIVEN: Final = {
    "api_key": "",
    "entity_id": "",
    "partner_claim_id": "case-1001",
}
"""Variables to fill in before the first call; beside them the address."""
_KEPT: Final = ("claim_id", "storage_path", "upload_url")
"""Members of answers that later calls take."""
_MINTS: Final = "mint_upload_url"


def collection(document: Json) -> Json:
    """Return the collection: a folder for each tag, a request for each operation."""
    variables = {"base_url": document["servers"][0]["url"], **_GIVEN}
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return {
        "info": {
            "name": document["info"]["title"],
            "description": f"{document['info']['summary']}\n\nFill in the variables of the "
            "collection; use a test key (`pk_test_…`) and the connected entity of its sandbox.",
            "schema": _FORMAT,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{api_key}}"}]},
        "variable": [{"key": name, "value": value} for name, value in variables.items()],
        "item": [
            {
                "name": tag["name"],
                "description": tag["description"],
                "item": [
                    item
                    for path, method, operation in operations
                    if tag["name"] in operation["tags"]
                    for item in _items(document, path, method, operation)
                ],
            }
            for tag in document["tags"]
        ],
    }


def _items(document: Json, path: str, method: str, operation: Json) -> list[Json]:
    request: Json = {
        "method": method.upper(),
        "header": [],
        "url": _url(path, operation),
        "description": operation["description"],
    }
    if "requestBody" in operation:
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        request["header"] = [_pair("Content-Type", "application/json")]
        request["body"] = _body(_filled(examples["complete"]["value"]))
    checks = _checks(document, operation["responses"])
    called = {"name": operation["summary"], "event": [_script(checks)], "request": request}
    return [called, _UPLOAD] if operation["operationId"] == _MINTS else [called]


def _url(path: str, operation: Json) -> Json:
    """Return the address; optional parameters are there, and not sent."""
    query = [
        _pair(one["name"], _variable(one["name"]) or str(one["example"]))
        | {"description": one["description"], "disabled": not one["required"]}
        for one in operation.get("parameters", [])
        if one["in"] == "query"
    ]
    sent = "&".join(f"{one['key']}={one['value']}" for one in query if not one["disabled"])
    parts = path.replace("{", "{{").replace("}", "}}").strip("/")
    raw = f"{{{{base_url}}}}/{parts}" + (f"?{sent}" if sent else "")
    return {"raw": raw, "host": ["{{base_url}}"], "path": parts.split("/"), "query": query}


def _filled(example: Any) -> Any:  # noqa: ANN401 - JSON is any
    """Return an example with variables for what differs from one partner to the next."""
    match example:
        case dict():
            return {name: _variable(name) or _filled(one) for name, one in example.items()}
        case list():
            return [_filled(one) for one in example]
        case _:
            return example


def _variable(name: str) -> str | None:
    return f"{{{{{name}}}}}" if name in _GIVEN or name in _KEPT else None


def _checks(document: Json, responses: Json) -> list[str]:
    """Return the script that checks an answer, and keeps what later calls take."""
    good = {int(status): answer for status, answer in responses.items() if status.startswith("2")}
    schema = next(iter(good.values()))["content"]["application/json"]["schema"]["$ref"]
    members = document["components"]["schemas"][schema.rpartition("/")[2]].get("required", [])
    return [
        "const body = pm.response.json();",
        f"pm.test('status', () => pm.expect(pm.response.code).to.be.oneOf({json.dumps([*good])}));",
        f"pm.test('members', () => pm.expect(body).to.include.all.keys({json.dumps(members)}));",
        f"for (const name of {json.dumps(_KEPT)})",
        "  if (name in body) pm.collectionVariables.set(name, body[name]);",
        "for (const [name, value] of Object.entries(body.required_headers ?? {})) {",
        "  const kind = name.toLowerCase() === 'content-type' ? 'type' : 'range';",
        "  pm.collectionVariables.set(`${kind}_header`, name);",
        "  pm.collectionVariables.set(`${kind}_value`, value);",
        "}",
    ]


def _script(lines: list[str]) -> Json:
    return {"listen": "test", "script": {"type": "text/javascript", "exec": lines}}


def _body(value: object) -> Json:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}


def _pair(name: str, value: str) -> Json:
    return {"key": name, "value": value}


_UPLOAD: Final[Json] = {
    "name": "Upload the document",
    "event": [_script(["pm.test('status', () => pm.response.to.have.status(200));"])],
    "request": {
        "auth": {"type": "noauth"},
        "method": "PUT",
        "header": [
            _pair("{{type_header}}", "{{type_value}}"),
            _pair("{{range_header}}", "{{range_value}}"),
        ],
        "url": "{{upload_url}}",
        "body": {"mode": "raw", "raw": "%PDF-1.7 or any file of yours"},
        "description": "Sends the file to storage, not to the service, with the `required_headers` "
        "of the answer before, and without the key.",
    },
}
