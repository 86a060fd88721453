"""Tools and texts for assistants, made from the OpenAPI document of the service that they call."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

Json = dict[str, Any]

UPLOAD: Final = "upload_document"
MINT: Final = "mint_upload_url"
UPLOAD_CHARACTERS_MAX: Final = 100_000

_COMPONENTS: Final = "#/components/schemas/"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Tool:
    """An operation of the API as a tool: what it takes, and the request that it becomes."""

    name: str
    title: str
    description: str
    method: str
    path: str
    schema: Json
    """JSON Schema of the arguments: the body's members beside the parameters."""
    places: Mapping[str, str]
    """Where each parameter stands: `path` or `query`; all other arguments are the body's."""
    repeatable: bool

    def request(self, arguments: Json) -> tuple[str, Json, Json | None]:
        """Return the path, the query and the body."""
        path, query = self.path, dict[str, Any]()
        for name, place in self.places.items():
            if place == "path":
                path = path.replace(f"{{{name}}}", quote(str(arguments.get(name, "")), safe=""))
            elif name in arguments:
                query[name] = arguments[name]
        body = {name: one for name, one in arguments.items() if name not in self.places}
        return path, query, None if self.method == "get" else body


@dataclass(frozen=True, slots=True)
class Text:
    """A part of the reference."""

    uri: str
    name: str
    mime_type: str
    text: str


def tools_of(document: Json) -> list[Tool]:
    """Return a tool for each operation."""
    return [
        _tool(document, path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def upload_tool(mint: Tool) -> Tool:
    """Return the tool that mints a URL and uploads a text to it; an assistant has no other way."""
    properties = {
        name: one for name, one in mint.schema["properties"].items() if name != "max_bytes"
    }
    properties["text"] = {
        "type": "string",
        "minLength": 1,
        "maxLength": UPLOAD_CHARACTERS_MAX,
        "description": "The file. One that does not begin as its `mime_type` does (a PDF: `%PDF-`) "
        "is flagged afterwards.",
    }
    return replace(
        mint,
        name=UPLOAD,
        title="Upload a document",
        description="Mint an upload URL and upload a text to it; returns the entry for "
        "`document_refs` of create_claim with the same `entity_id` and `partner_claim_id`.",
        schema=mint.schema | {"properties": properties, "required": [*properties]},
    )


def texts_of(document: Json) -> list[Text]:
    """Return the guide, each operation, and the document itself."""
    pages = [
        Text(
            f"claim-ledger://operations/{tool.name}", tool.title, "text/markdown", _page(tool, one)
        )
        for tool in tools_of(document)
        for one in [document["paths"][tool.path][tool.method]]
    ]
    guide = document["info"]["description"]
    whole = json.dumps(document, ensure_ascii=False)
    return [
        Text("claim-ledger://guide", "Guide", "text/markdown", guide),
        *pages,
        Text("claim-ledger://openapi.json", "OpenAPI document", _JSON, whole),
    ]


def _tool(document: Json, path: str, method: str, operation: Json) -> Tool:
    parameters = operation.get("parameters", [])
    schema: Json = {"type": "object", "properties": {}, "required": []}
    if "requestBody" in operation:
        name = operation["requestBody"]["content"][_JSON]["schema"]["$ref"]
        schema = _local(document["components"]["schemas"][name.removeprefix(_COMPONENTS)])
    properties = dict(schema["properties"])
    required = list(schema["required"])
    for one in parameters:
        properties[one["name"]] = one["schema"] | {"description": one["description"]}
        required += [one["name"]] if one["required"] else []
    definitions = _definitions(document, properties)
    return Tool(
        name=operation["operationId"],
        title=operation["summary"],
        description=f"{operation['summary']}.\n\n{operation['description']}",
        method=method,
        path=path,
        schema={"type": "object", "properties": properties, "required": required}
        | ({"$defs": definitions} if definitions else {}),
        places={one["name"]: one["in"] for one in parameters},
        repeatable=operation["x-retry"]["repeat"] == "safe",
    )


def _definitions(document: Json, schema: Json) -> Json:
    """Return the schemas that a schema refers to, and those that these refer to."""
    found: Json = {}
    ahead = [schema]
    while ahead:
        for name in _referred(ahead.pop()) - found.keys():
            found[name] = _local(document["components"]["schemas"][name])
            ahead.append(found[name])
    return found


def _referred(value: object) -> set[str]:
    """Return the names of `#/$defs` that a value refers to."""
    match value:
        case {"$ref": str(target)}:
            return {target.removeprefix("#/$defs/")}
        case dict():
            return {name for one in value.values() for name in _referred(one)}
        case list():
            return {name for one in value for name in _referred(one)}
        case _:
            return set()


def _local(schema: Json) -> Json:
    """Return a schema whose references are to its own `$defs`."""
    return json.loads(json.dumps(schema).replace(f'"{_COMPONENTS}', '"#/$defs/'))


def _page(tool: Tool, operation: Json) -> str:
    lines = [f"# {tool.title}", f"`{tool.method.upper()} {tool.path}`", operation["description"]]
    if "requestBody" in operation:
        examples = operation["requestBody"]["content"][_JSON]["examples"]
        lines += [_example(one["summary"], one["value"]) for one in examples.values()]
    for status, answer in operation["responses"].items():
        lines += [f"## {status}", answer["description"]]
    return "\n\n".join(lines) + "\n"


def _example(title: str, value: object) -> str:
    return f"{title}:\n\n```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```"
