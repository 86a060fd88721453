"""What is generated is not older than its sources; `.ci/run` generates and compares all of it."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """Return the generator."""
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_types_are_those_of_the_document(generate):
    """`just clients` has been run since its schemas changed."""
    source = generate.digest(generate.schemas_of(json.loads(generate.DOCUMENT.read_text())))
    assert source in (generate.PACKAGE / "models.py").read_text(), "run `uv run just clients`"


def test_the_synchronous_client_is_that_of_the_asynchronous_one(generate):
    """`just clients` has been run since a module of `_async` changed, and there is no other."""
    names = {path.name for path in (generate.PACKAGE / "_async").glob("*.py")}
    assert names == {path.name for path in (generate.PACKAGE / "_sync").glob("*.py")}
    for name in names:
        source = generate.digest((generate.PACKAGE / "_async" / name).read_text())
        twin = (generate.PACKAGE / "_sync" / name).read_text()
        assert source in twin, "run `uv run just clients`"
