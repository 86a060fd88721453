"""The arguments of the Terraform resources that deploy/terraform has, by their provider's schema.

`python -m tests.deploy.provider_schema` writes `provider_schema.json` from the package
`cdktn-provider-google`, which is made from the provider: each argument's name, whether it is
required, and the arguments of blocks.
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
_NAME = re.compile(r"/docs/(?:resources|data-sources)/\w+#(\w+) ")
_VERSION = re.compile(r"/hashicorp/google/([\d.]+)/docs/")
Tree = dict[str, Any]


def provider_schema(names: set[tuple[str, str]]) -> Tree:
    """Return the schema of these blocks, by `resource` or `data` and the type's name."""
    assembly = _assembly()
    configs = {name: _config(*name) for name in names}
    types = assembly["types"]
    arguments = {
        f"{kind} {name}": _arguments(types, f"{assembly['name']}.{config}")
        for (kind, name), config in sorted(configs.items())
    }
    bucket = types[f"{assembly['name']}.storageBucket.StorageBucketConfig"]
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


def _config(kind: str, name: str) -> str:
    """Return the package's name of a block: `sqlDatabase.SqlDatabaseConfig`."""
    words = name.removeprefix("google_").split("_")
    title = "".join(one.capitalize() for one in words)
    prefix = "DataGoogle" if kind == "data" else ""
    full = prefix + title
    return f"{full[0].lower()}{full[1:]}.{full}Config"


def _arguments(types: Tree, of: str) -> Tree:
    found: Tree = {}
    for one in types[of].get("properties", []):
        name = _NAME.search(json.dumps(one.get("docs", {})))
        if name is None:
            continue  # Terraform's own: count, for_each, lifecycle
        row: Tree = {} if one.get("optional") else {"required": True}
        block = _block(one["type"], types)
        if block is not None:
            row["block"] = _arguments(types, block)
        found[name[1]] = row
    return found


def _block(kind: Tree, types: Tree) -> str | None:
    """Return the type of a block that an argument is, or is a list of."""
    for name in re.findall(r'"fqn": "([^"]+)"', json.dumps(kind)):
        if name in types and types[name]["kind"] == "interface":
            return name
    return None


if __name__ == "__main__":
    schema = provider_schema({(one.kind, one.type) for one in blocks() if one.type})
    STORED.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")
