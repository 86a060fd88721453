#!/usr/bin/env -S uv run --quiet --script
# /// script
# requires-python = ">=3.11"
# dependencies = ["tf==1.2.0"]
# ///
"""A provider for Terraform that has the schema of Google's and can do nothing.

With it, `terraform validate` resolves references, types, functions and conditions where the
registry, and so the provider itself, is out of reach. It is started by Terraform, in an environment
of its own: the package that speaks Terraform's protocol wants an older protobuf than ours.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tf.gen import tfplugin_pb2 as protocol
from tf.iface import Provider
from tf.runner import run_provider

Rows = dict[str, Any]
SCHEMA = json.loads(Path(__file__).resolve().with_name("provider_schema.json").read_text())
NESTED = protocol.Schema.NestedBlock


def block_of(rows: Rows) -> protocol.Schema.Block:
    """Return the rows of `provider_schema.json` as Terraform's protocol has them."""
    return protocol.Schema.Block(
        attributes=[attribute(*one) for one in rows.items() if "block" not in one[1]],
        block_types=[nested(*one) for one in rows.items() if "block" in one[1]],
    )


def attribute(name: str, row: Rows) -> protocol.Schema.Attribute:
    """Return an argument; what may be left out may be filled in by Google."""
    required = row.get("required", False)
    return protocol.Schema.Attribute(
        name=name,
        type=json.dumps(row.get("type", "string")).encode(),
        required=required,
        optional=not required and not row.get("computed"),
        computed=not required,
    )


def nested(name: str, row: Rows) -> protocol.Schema.NestedBlock:
    """Return a block: one, or as many as are wanted."""
    return NESTED(
        type_name=name,
        block=block_of(row["block"]),
        nesting=NESTED.SINGLE if name == "timeouts" else NESTED.LIST,
        min_items=1 if row.get("required") else 0,
        max_items=0 if row.get("many") or name == "timeouts" else 1,
    )


@dataclass
class Kind:
    """A resource or a source of data: its name and its schema."""

    name: str
    rows: Rows

    def get_name(self) -> str:
        """Return the name after the provider's prefix."""
        return self.name

    def get_schema(self) -> "Kind":
        """Return what has `to_pb`."""
        return self

    def to_pb(self) -> protocol.Schema:
        """Return the schema in the protocol's words."""
        return protocol.Schema(block=block_of(self.rows))

    def validate(self, *_: Any) -> None:
        """Say nothing: Terraform held it to the schema, and the rest is Google's to know."""


def kinds(of: str) -> list[Kind]:
    """Return all resources (`resource`) or sources of data (`data`)."""
    found = [(*key.split(), rows) for key, rows in SCHEMA["arguments"].items()]
    return [Kind(name.removeprefix("google_"), rows) for kind, name, rows in found if kind == of]


class StandIn(Provider):
    """What Terraform asks of a provider before it does anything."""

    get_model_prefix = staticmethod(lambda: "google_")
    full_name = staticmethod(lambda: "registry.terraform.io/hashicorp/google")
    get_provider_schema = staticmethod(lambda _: kinds("provider")[0])
    get_resources = staticmethod(lambda: kinds("resource"))
    get_data_sources = staticmethod(lambda: kinds("data"))
    new_resource = new_data_source = staticmethod(lambda kind: kind)
    validate_config = configure_provider = staticmethod(lambda *_: None)


if __name__ == "__main__":
    os.environ["HOME"] = os.environ["TF_DATA_DIR"]  # where it keeps its certificate
    run_provider(StandIn())
