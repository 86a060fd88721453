"""Example values, assembled from the examples of a schema's fields."""

from typing import Any

Json = dict[str, Any]


def example_of(schema: Json, schemas: Json, *, least: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return a value that the schema accepts; with `least` without the fields not required.

    Items of arrays are complete in either case. Raises LookupError for a field without an example.
    """
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema or "anyOf" in schema:
        return example_of(resolved(schema, schemas), schemas, least=least)
    if "items" in schema:
        return [example_of(schema["items"], schemas)]
    if "properties" in schema:
        required = schema.get("required", [])
        return {
            name: example_of(member, schemas, least=least)
            for name, member in schema["properties"].items()
            if not least or name in required
        }
    raise LookupError(f"no example in {schema}")


def resolved(schema: Json, schemas: Json) -> Json:
    """Return the schema that a reference points to, the first of several; any other as it is."""
    if "$ref" in schema:
        return schemas[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return resolved(schema["anyOf"][0], schemas)
    return schema
