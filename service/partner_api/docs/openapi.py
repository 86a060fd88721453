"""The OpenAPI 3.1 document, made from the endpoints, the wire types and the error table."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from service.core.errors import ERRORS, Refusal
from service.http.bodies import BODY_BYTES_MAX
from service.http.scalars import OPEN_ENUM
from service.partner_api.docs.examples import example_of
from service.partner_api.docs.headers import HEADERS, error_headers, success_headers
from service.partner_api.docs.retries import retry_rule, retry_rules
from service.partner_api.endpoints import ANY_PATH, Endpoint, ResponseLink, Success, WireType

VERSION: Final = "1.0.0"
"""Version of the interface, whose major version is the `v1` of its address."""

Json = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/{name}"
_SECTION: Final = re.compile(r" \(contract [^)]*\)")
"""Our docstrings refer to sections of a document that partners may not have."""

_OURS: Final = "*An addition of ours: nothing in the contract depends on it.*\n\n"

PK_WARNING: Final = (
    "An API key of yours. **The `pk_` here does not mean publishable: the whole key is a secret.** "
    "Keep it on your servers, never in a browser, an app or a repository."
)


def document(endpoints: Sequence[Endpoint], base_url: str, guide: str) -> Json:
    """Return the document. `base_url` ends in `/v1`; `guide` is Markdown for people."""
    schemas = _component_schemas(endpoints)
    paths: defaultdict[str, Json] = defaultdict(dict)
    for endpoint in endpoints:
        paths[endpoint.path][endpoint.method] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Claims API for partners",
            "version": VERSION,
            "summary": "Refer businesses, and create debt-recovery claims on their behalf.",
            "description": guide,
        },
        "servers": [{"url": base_url}],
        "x-retry": retry_rules(error_codes(endpoints)),
        "security": [{"apiKey": []}],
        "tags": [
            {"name": "Businesses", "description": "Onboard them, or have them connect."},
            {"name": "Documents", "description": "Upload them before the claim that names them."},
            {"name": "Claims", "description": "Create them, list them."},
            {"name": "Events", "description": "Follow what happens."},
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": HEADERS,
            "securitySchemes": {
                "apiKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "pk_live_<partner>.<key>.<secret>, or pk_test_",
                    "description": PK_WARNING,
                }
            },
        },
    }


def error_codes(endpoints: Sequence[Endpoint]) -> list[str]:
    """Return the codes that a partner's server can receive, in the order of the error table."""
    possible = {code for endpoint in endpoints for code in endpoint.errors}.union(ANY_PATH)
    return [code for code in ERRORS if code in possible]


def _component_schemas(endpoints: Sequence[Endpoint]) -> Json:
    """Return the schemas of all wire types and of the error envelope, by name."""
    types = {kind for one in endpoints for kind in (one.body, *(s.type for s in one.successes))}
    ordered = sorted((kind for kind in types if kind), key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(ordered, ref_template=_SCHEMAS)
    bodies = [endpoint.body for endpoint in endpoints if endpoint.body]
    _, requested = msgspec.json.schema_components(bodies, ref_template=_SCHEMAS)
    schemas: Json = {
        name: one if name in requested else _always_sent(one)
        for name, one in _without_sections(found).items()
    }
    return schemas | {"Error": _error_schema(error_codes(endpoints))}


def _always_sent(schema: Json) -> Json:
    """Return an answer's schema: fields with a default are required, since they are sent."""
    members = cast("Json", schema.get("properties", {}))
    sent = [
        name
        for name, member in members.items()
        if "default" in member or name in schema.get("required", [])
    ]
    plain = {
        name: {key: one for key, one in member.items() if key != "default"}
        for name, member in members.items()
    }
    return schema | ({"properties": plain, "required": sent} if members else {})


def _operation(endpoint: Endpoint, schemas: Json) -> Json:
    operation: Json = {
        "operationId": endpoint.id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": _OURS + endpoint.description if endpoint.ours else endpoint.description,
    }
    if endpoint.query or endpoint.in_path:
        operation["parameters"] = [
            *_parameters(endpoint.in_path, "path"),
            *_parameters(endpoint.query, "query"),
        ]
    if endpoint.body:
        operation["requestBody"] = {
            "required": True,
            "description": f"JSON in UTF-8, at most {BODY_BYTES_MAX} bytes.",
            "content": _json(_ref(endpoint.body), _request_examples(endpoint.body, schemas)),
        }
    operation["x-retry"] = retry_rule(endpoint)
    responses = {str(one.status): _success(one, schemas) for one in endpoint.successes}
    operation["responses"] = responses | _failures(endpoint.errors)
    return operation


def _parameters(kind: WireType | None, place: str) -> list[Json]:
    """Return the parameters for the fields of a type, which stand in the path or the query."""
    if kind is None:
        return []
    schema = msgspec.json.schema(kind, ref_template=_SCHEMAS)["$defs"][kind.__name__]
    return [
        {
            "name": name,
            "in": place,
            "required": name in schema["required"],
            "description": kind.pop("description"),
            "example": kind.pop("examples")[0],
            "schema": kind,
        }
        for name, kind in cast("Json", schema["properties"]).items()
    ]


def _request_examples(body: WireType, schemas: Json) -> Json:
    """Return the example bodies: one with the required fields, one with every field."""
    schema = schemas[body.__name__]
    least = example_of(schema, schemas, least=True)
    return {
        "least": {"summary": "The required fields", "value": least},
        "complete": {"summary": "Every field", "value": example_of(schema, schemas)},
    }


def _success(success: Success, schemas: Json) -> Json:
    example = example_of(schemas[success.type.__name__], schemas) | dict(success.changes)
    described: Json = {
        "description": success.description,
        "headers": _headers(success_headers(dict(success.headers))),
        "content": _json(_ref(success.type), {"answer": {"value": example}}),
    }
    if success.links:
        described["links"] = {link.operation: _link(link) for link in success.links}
    return described


def _link(link: ResponseLink) -> Json:
    described: Json = {"operationId": link.operation, "description": link.description}
    if link.parameters:
        described["parameters"] = dict(link.parameters)
    if link.body:
        described["requestBody"] = dict(link.body)
    return described


def _failures(codes: Sequence[str]) -> Json:
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in ERRORS:
        if code in codes:
            by_status[ERRORS[code].status].append(code)
    return {str(status): _failure(status, some) for status, some in sorted(by_status.items())}


def _failure(status: int, codes: list[str]) -> Json:
    lines = [f"- `{code}`: {ERRORS[code].message} {ERRORS[code].retry}" for code in codes]
    examples = {code: {"value": error_example(code)} for code in codes}
    return {
        "description": "\n".join(lines),
        "headers": _headers(error_headers(status, codes)),
        # One schema for all: a generator would make a type of each that differs. The codes that
        # this operation returns are the names of the examples.
        "content": _json({"$ref": _SCHEMAS.format(name="Error")}, examples),
    }


def error_example(code: str) -> Json:
    """Return the envelope of an error as a partner would receive it."""
    faults = {"invoices": ["[0].due_date: not a calendar date"], "defendant": ["name: required"]}
    return Refusal(code, field_errors=faults).envelope()


def _error_schema(codes: Sequence[str]) -> Json:
    messages = {"type": "array", "items": {"type": "string"}}
    return {
        "title": "Error",
        "description": "Every answer that is not 2xx. Branch on `code`.",
        "type": "object",
        "required": ["error", "code", "message"],
        "properties": {
            "error": {"type": "string", "description": "The HTTP reason phrase, for people."},
            "code": {"type": "string", OPEN_ENUM: list(codes), "description": "Stable."},
            "message": {"type": "string", "description": "For people; may change."},
            "details": {
                "description": "With `validation_failed` alone: every fault, not the first.",
                "type": "object",
                "required": ["formErrors", "fieldErrors"],
                "properties": {
                    "formErrors": messages | {"description": "Faults of the request as a whole."},
                    "fieldErrors": {
                        "description": "Faults by top-level field or query parameter; each message "
                        "begins with the inner path.",
                        "type": "object",
                        "additionalProperties": messages,
                    },
                },
            },
        },
        "if": {"properties": {"code": {"const": "validation_failed"}}},
        "then": {"required": ["details"]},
        "else": {"properties": {"details": False}},
    }


def _headers(names: Mapping[str, bool]) -> Json:
    """Return the headers, those always present in full and required, others by reference."""
    return {
        name: HEADERS[name] | {"required": True}
        if always
        else {"$ref": f"#/components/headers/{name}"}
        for name, always in names.items()
    }


def _json(schema: Json, examples: Json) -> Json:
    return {"application/json": {"schema": schema, "examples": examples}}


def _ref(kind: WireType) -> Json:
    return {"$ref": _SCHEMAS.format(name=kind.__name__)}


def _without_sections(value: Any) -> Any:  # noqa: ANN401 - JSON is any
    match value:
        case dict():
            return {name: _without_sections(one) for name, one in cast("Json", value).items()}
        case list():
            return [_without_sections(one) for one in cast("list[Any]", value)]
        case str():
            return _SECTION.sub("", value)
        case _:
            return value
