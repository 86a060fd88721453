"""What an assistant is told of the sandbox, and whom `claim-ledger mcp` refuses."""

import jsonschema_rs
import pytest
from click.testing import CliRunner

from service.cli import cli
from service.cli.mcp.tools import texts_of, tools_of
from tests.conformance import described


def test_each_operation_is_a_tool_that_takes_the_examples():
    """A body of the reference is valid arguments, and becomes the body again."""
    operations = {
        one["operationId"]: one for path in described()["paths"].values() for one in path.values()
    }
    tools = {one.name: one for one in tools_of(described())}
    assert tools.keys() == operations.keys()
    for name, operation in operations.items():
        validator = jsonschema_rs.validator_for(tools[name].schema)
        given = {one["name"]: one["example"] for one in operation.get("parameters", [])}
        if "requestBody" in operation:
            examples = operation["requestBody"]["content"]["application/json"]["examples"]
            for example in examples.values():
                validator.validate(given | example["value"])
                assert tools[name].request(given | example["value"])[2] == example["value"]
        else:
            validator.validate(given)
        assert "{" not in tools[name].request(given)[0]


def test_an_argument_stays_in_its_place():
    """A parameter of the query is no part of the path, and none of a body."""
    (tool,) = (one for one in tools_of(described()) if one.name == "list_claims")
    given = {"entity_id": "ent_1/../?x", "limit": 5}
    assert tool.request(given) == ("/claims", given, None)


def test_the_reference_is_texts():
    """The guide, a page for each operation with its errors, and the document."""
    texts = {one.uri: one for one in texts_of(described())}
    page = texts["claim-ledger://operations/create_claim"].text
    assert "POST /claims" in page
    assert "`document_not_uploaded`" in page
    assert len(texts) == len(tools_of(described())) + 2


@pytest.mark.parametrize("key", ["", "pk_live_ptn_1.key_1.secret", "pk_test_ptn_1.key_1.sec\nret"])
def test_only_a_test_key_is_taken(key):
    """A live key ends the command before anything is sent, and is not printed."""
    done = CliRunner().invoke(cli, ["mcp"], env={"CLAIMS_API_KEY": key})
    assert done.exit_code == 1
    assert "has to be a test key" in done.output
    assert "secret" not in done.output


@pytest.mark.parametrize("url", ["http://api.example.com/v1", "api.example.com", "file:///v1"])
def test_the_key_is_sent_where_nobody_reads_along(url):
    """Another machine is reached by https alone."""
    key = {"CLAIMS_API_KEY": "pk_test_ptn_1.key_1.secret"}
    done = CliRunner().invoke(cli, ["mcp", "--url", url], env=key)
    assert done.exit_code == 1
    assert "https://" in done.output or "origin" in done.output
    assert "secret" not in done.output
