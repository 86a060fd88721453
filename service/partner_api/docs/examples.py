"""Example values put together from the examples that the fields of a schema carry."""

from typing import Any

Json = dict[str, Any]


def example_of(schema: Json, schemas: Json, *, least: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return a value that the schema accepts; `least` leaves out what is not required.

    What stands in arrays is whole even so. Raises LookupError for a field that has neither an
    example nor members that have.
    """
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
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
    """Follow a reference into the components."""
    if "$ref" in schema:
        return schemas[schema["$ref"].rpartition("/")[2]]
    return schema
