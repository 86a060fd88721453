"""The arguments of the Terraform resources that deploy/terraform has, by their provider's schema.

`python -m tests.deploy.provider_schema` writes `provider_schema.json` from the package
`cdktn-provider-google`, which is made from the provider: each argument's name, its type where that
is not a string, whether it is required, and the arguments of blocks; and what is only read
(`computed`).
"""

import io
import json
import re
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.deploy.terraform import blocks

STORED = Path(__file__).with_name("provider_schema.json")
_NAME = re.compile(r"/docs(?:/(?:resources|data-sources)/\w+)?#(\w+) ")
_VERSION = re.compile(r"/hashicorp/google/([\d.]+)/docs/")
RESOLVABLE = {"fqn": "cdktn.IResolvable"}
TYPES = {
    "string": "string",
    "number": "number",
    "boolean": "bool",
    RESOLVABLE["fqn"]: "bool",  # where nothing else is said beside it
    "cdktn.StringMap": ["map", "string"],
}
"""Terraform's names of the package's types."""
Tree = dict[str, Any]


def used() -> set[tuple[str, str]]:
    """Return what deploy/terraform has of the provider's: its kinds and their names."""
    return {(one.kind, one.type) for one in blocks() if one.type} | {("provider", "google")}


def provider_schema(names: set[tuple[str, str]]) -> Tree:
    """Return the schema of these blocks, by `resource`, `data` or `provider` and a name."""
    assembly = _assembly()
    types = {
        one.removeprefix(f"{assembly['name']}."): found for one, found in assembly["types"].items()
    }
    arguments = {
        f"{kind} {name}": _arguments(types, f"{of}Config", of)
        for kind, name in sorted(names)
        for of in [_class(kind, name)]
    }
    bucket = types["storageBucket.StorageBucketConfig"]
    (version,) = set(_VERSION.findall(json.dumps(bucket)))
    return {"provider": version, "arguments": arguments}


def _assembly() -> Tree:
    """Return what the package says of its types."""
    # It is found and not imported: importing it would start Node.
    spec = find_spec("cdktn_provider_google")
    assert spec is not None
    assert spec.origin is not None
    (packed,) = Path(spec.origin).with_name("_jsii").glob("*.tgz")
    with tarfile.open(fileobj=io.BytesIO(packed.read_bytes())) as archive:
        found = archive.extractfile("package/.jsii")
        assert found is not None
        return json.load(found)


def _class(kind: str, name: str) -> str:
    """Return the package's name of a block: `sqlDatabase.SqlDatabase`."""
    if kind == "provider":
        return "provider.GoogleProvider"
    title = "".join(one.capitalize() for one in name.removeprefix("google_").split("_"))
    full = f"{'DataGoogle' if kind == 'data' else ''}{title}"
    return f"{full[0].lower()}{full[1:]}.{full}"


def _arguments(types: Tree, settings: str, read: str) -> Tree:
    """Return what is set, by one of the package's types, and what is only read, by another."""
    found: Tree = {}
    not_read = {"internalValue", "tfResourceType", "functions"}  # the package's own
    for one in types[settings].get("properties", []):
        not_read |= {one["name"], f"{one['name']}Input"}
        name = _NAME.search(json.dumps(one.get("docs", {})))
        if name is None:
            continue  # Terraform's own: count, for_each, lifecycle
        row: Tree = {} if one.get("optional") else {"required": True}
        block = _block(one["type"], types)
        if block is not None:
            row["block"] = _arguments(types, block, f"{block}OutputReference")
            row |= {"many": True} if "collection" in json.dumps(one["type"]) else {}
        else:
            row |= _type(one["type"], types)
        found[name[1]] = row
    for one in types.get(read, {}).get("properties", []):
        if one["name"] not in not_read and one.get("immutable"):
            found[_snake(one["name"])] = {"computed": True} | _type(one["type"], types)
    return found


def _block(kind: Tree, types: Tree) -> str | None:
    """Return the type of a block that an argument is, or is a list of."""
    for name in _named(kind):
        if name in types and types[name]["kind"] == "interface":
            return name
    return None


def _type(kind: Tree, types: Tree) -> Tree:
    """Return the row's part about a type, as Terraform writes types; nothing for a string."""
    found = _terraform_type(kind, types)
    return {} if found == "string" else {"type": found}


def _terraform_type(kind: Tree, types: Tree) -> Any:
    match kind:
        case {"primitive": name} | {"fqn": name} if name in TYPES:
            return TYPES[name]
        case {"collection": {"kind": many, "elementtype": one}}:
            return ["list" if many == "array" else "map", _terraform_type(one, types)]
        case {"union": {"types": several}}:
            (one,) = [one for one in several if one != RESOLVABLE]
            return _terraform_type(one, types)
        case _:
            (name,) = _named(kind)
            struct = re.sub(r"(List|OutputReference)$", "", name)
            rows = _arguments(types, struct, f"{struct}OutputReference")
            members = {key: row.get("type", "string") for key, row in rows.items()}
            return ["list", ["object", members]]


def _named(kind: Tree) -> list[str]:
    return [
        name.partition("/provider-google.")[2]
        for name in re.findall(r'"fqn": "([^"]+)"', json.dumps(kind))
    ]


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


if __name__ == "__main__":
    schema = provider_schema(used())
    STORED.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")
