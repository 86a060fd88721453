"""What the tests of every statement need, which are partly outside the gate."""

import pytest

from tests.statements import PACKAGES, is_of, prepared, sample, statements_of

pytestmark = pytest.mark.server


def test_every_type_of_a_parameter_has_a_value_to_run_statements_with(owner):
    """PostgreSQL takes it as one; the gate does not run the statements on Citus."""
    types = set()
    for sql in (one for package in PACKAGES for one in statements_of(package)):
        if is_of(owner, sql, "live") and (found := prepared(owner, sql, "live")) is not None:
            types |= set(found)
            owner.execute("deallocate one")
    assert "uuid" in types
    for one in sorted(types):
        owner.execute(f"select {sample(one)}")
