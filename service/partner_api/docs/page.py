"""The reference page for people, rendered from the OpenAPI document and the error table."""

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from service.core.errors import ERRORS, ErrorCode
from service.http.scalars import OPEN_ENUM
from service.partner_api.docs.examples import resolved
from service.partner_api.docs.guide import TEMPLATES
from service.partner_api.docs.openapi import error_example
from service.partner_api.docs.samples import PYTHON, python, typescript
from service.partner_api.endpoints import ANY_PATH, Endpoint

Json = dict[str, Any]

_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)


class FieldRow(NamedTuple):
    """A row of a table of fields; `path` is written `invoices[].number`."""

    path: str
    type: str
    required: bool
    description: str


class Sample(NamedTuple):
    """A request in a language: its name for the page's links and scripts, and its title."""

    language: str
    title: str
    code: str


def render_page(
    endpoints: Sequence[Endpoint],
    document: Json,
    guide: str,
    *,
    style: str,
    script: str,
    openapi: str,
    postman: str,
    site: str | None = None,
) -> str:
    """Return the page as HTML; its keyword arguments are paths on this host."""
    return TEMPLATES.get_template("reference.html").render(
        info=document["info"],
        base_url=document["servers"][0]["url"],
        style=style,
        script=script,
        openapi=openapi,
        postman=postman,
        site=site,
        sections=_sections(guide),
        operations=[_operation(endpoint, document) for endpoint in endpoints],
        errors=[_error_row(row, endpoints) for row in ERRORS.values()],
    )


def _sections(guide: str) -> list[Json]:
    """Return the chapters of the guide."""
    _, *parts = _HEADING.split(guide)
    return [
        {"anchor": title.lower().replace(" ", "-"), "title": title, "html": _html(text)}
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    ]


def _operation(endpoint: Endpoint, document: Json) -> Json:
    schemas = document["components"]["schemas"]
    operation = document["paths"][endpoint.path][endpoint.method]
    body = endpoint.body and schemas[endpoint.body.__name__]
    return {
        "endpoint": endpoint,
        "description": _html(operation["description"]),
        "parameters": [
            FieldRow(
                one["name"], _type(one["schema"], schemas), one["required"], one["description"]
            )
            for one in operation.get("parameters", [])
        ],
        "fields": field_rows(body, schemas) if body else [],
        "answer_fields": field_rows(schemas[endpoint.successes[0].type.__name__], schemas),
        "path": urlsplit(document["servers"][0]["url"]).path + endpoint.path,
        "in_path": [one["name"] for one in operation.get("parameters", []) if one["in"] == "path"],
        "samples": samples(endpoint, document),
        "least": _example(operation["requestBody"], "least") if body else "",
        "body": _example(operation["requestBody"], "complete") if body else "",
        "answers": [
            {"success": one, "example": _example(operation["responses"][str(one.status)], "answer")}
            for one in endpoint.successes
        ],
        "errors": sorted(
            (row for row in ERRORS.values() if row.code in endpoint.errors),
            key=lambda row: row.status,
        ),
    }


def field_rows(schema: Json, schemas: Json, prefix: str = "") -> list[FieldRow]:
    """Return the fields of an object, each followed by those of its inner objects."""
    rows: list[FieldRow] = []
    required = schema.get("required", [])
    for name, member in schema["properties"].items():
        path, text = f"{prefix}{name}", member.get("description", "")
        rows.append(FieldRow(path, _type(member, schemas), name in required, text))
        inner = resolved(member, schemas)
        if inner.get("type") == "array":
            inner, path = resolved(inner["items"], schemas), f"{path}[]"
        if "properties" in inner:
            rows.extend(field_rows(inner, schemas, f"{path}."))
    return rows


def samples(endpoint: Endpoint, document: Json) -> list[Sample]:
    """Return the request in each language; in Python once its client has the method."""
    operation = document["paths"][endpoint.path][endpoint.method]
    parameters, body = _required(operation), None
    if endpoint.body:
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        body = examples["least"]["value"]
    found = [Sample("curl", "curl", curl(endpoint, document))]
    if endpoint.id in PYTHON:
        found.append(Sample("python", "Python", python(endpoint, document, parameters, body)))
    return [*found, Sample("typescript", "TypeScript", typescript(endpoint, parameters, body))]


def _required(operation: Json) -> list[Json]:
    return [one for one in operation.get("parameters", []) if one["required"]]


def curl(endpoint: Endpoint, document: Json) -> str:
    """Return a command to paste; it reads the key from the shell variable `CLAIMS_API_KEY`."""
    operation = document["paths"][endpoint.path][endpoint.method]
    url = document["servers"][0]["url"] + endpoint.path
    required = _required(operation)
    for one in required:
        url = url.replace(f"{{{one['name']}}}", str(one["example"]))
    query = [f"{one['name']}={one['example']}" for one in required if one["in"] == "query"]
    url += f"?{'&'.join(query)}" if query else ""
    lines = [f"curl -s {shlex.quote(url)}", '-H "Authorization: Bearer $CLAIMS_API_KEY"']
    if endpoint.body:
        body = _example(operation["requestBody"], "least")
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body)}"]
    return " \\\n  ".join(lines)


def _example(message: Json, name: str) -> str:
    """Return an example of a request body or a response, as it is shown."""
    return _pretty(message["content"]["application/json"]["examples"][name]["value"])


def _type(schema: Json, schemas: Json) -> str:
    """Return `string, at most 255`, `array of objects, 1 to 1000`, `string or null`."""
    if "anyOf" in schema:
        return " or ".join(_type(one, schemas) for one in schema["anyOf"])
    schema = resolved(schema, schemas)
    name = schema.get("format") or schema["type"]
    if name == "array":
        name = f"array of {resolved(schema['items'], schemas)['type']}s"
    if values := schema.get("enum", schema.get(OPEN_ENUM)):
        return "one of " + ", ".join(values)
    least = schema.get("minLength", schema.get("minItems"))
    most = schema.get("maxLength", schema.get("maxItems"))
    if most is None:
        return name
    return f"{name}, {least} to {most:,}" if least else f"{name}, at most {most:,}"


def _error_row(row: ErrorCode, endpoints: Sequence[Endpoint]) -> Json:
    """Return a row of the error table, and the endpoints that can return it."""
    found = [endpoint for endpoint in endpoints if row.code in endpoint.errors]
    if row.code in ANY_PATH:
        where = "any path"
    elif len(found) == len(endpoints):
        where = "every endpoint"
    elif found:
        where = ", ".join(f"{one.method.upper()} {one.path}" for one in found)
    else:
        where = "outside the API: on your customer's pages, or in the team's commands"
    return {"row": row, "where": where, "example": _pretty(error_example(row.code))}


def _html(markdown: str) -> Markup:
    # The Markdown comes from this package alone, never from a request.
    return Markup(_MARKDOWN.render(markdown))  # noqa: S704 - as above


def _inline(markdown: str) -> Markup:
    """Return a sentence with its code marked up, for a cell or a paragraph."""
    return Markup(_MARKDOWN.renderInline(markdown))  # noqa: S704 - as above


def _breakable(path: str) -> Markup:
    """Return a field's path that a narrow column breaks between its words."""
    words = escape(path).replace(".", Markup(".<wbr>")).replace("_", Markup("_<wbr>"))
    return Markup(words)  # noqa: S704 - escaped above


TEMPLATES.filters |= {"inline": _inline, "breakable": _breakable}


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
