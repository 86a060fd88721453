"""What every session of ours is given, whatever its login or its database would give it.

`alter role … set` and `alter database … set` change what the statements of others mean: by an
operator of another schema in place of PostgreSQL's, a policy that hides rows, a snapshot that a
whole transaction keeps, or commits that wait for no disk. A startup option outranks both.
"""

from typing import Final

SESSION: Final = {
    "search_path": "pg_catalog, pg_temp",
    "row_security": "off",  # a policy refuses a statement then, and hides no row
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",  # else PostgreSQL words its definitions differently
}
