"""Every statement about somebody's rows, with others' beside them: see `tenants.py`."""

import re
from pathlib import Path

import pytest

from tests.apart import documents, lists, mail, people, requests, webhooks
from tests.apart.tenants import assert_apart
from tests.statements import PACKAGES

TABLES = [
    table
    for module in (webhooks, requests, lists, people, mail, documents)
    for table in module.TABLES
]
OF_EVERYBODY = {"service.evidence", "service.evidence.replay", "service.pages.backoffice",
                "service.privacy"}  # fmt: skip
"""The team and operators look at rows of every tenant by its id."""
BY_TENANT = re.compile(r"\b(?:partner_id|endpoint_id|entity_id|person_id|claim_id) = \$\d")


@pytest.mark.parametrize(
    ("package", "tenants", "arguments"), TABLES, ids=[f"{one[0]} {one[1].tenant}" for one in TABLES]
)
def test_others_rows_are_neither_returned_nor_changed(module_owner, package, tenants, arguments):
    """A new statement is listed with arguments, and with rows by which its conditions count."""
    assert_apart(module_owner, package, tenants, arguments)


def test_every_file_of_statements_by_tenant_is_among_them():
    """Or is one for those who may look at everybody's rows."""
    by_tenant = {
        package
        for package in PACKAGES
        if BY_TENANT.search(Path(*package.split("."), "queries.sql").read_text())
    }
    assert by_tenant - OF_EVERYBODY <= {package for package, _, _ in TABLES}
    assert by_tenant >= OF_EVERYBODY
