"""A PostgreSQL server of our own, for `claim-ledger dev`, the tests and the bench."""

from service.embedded.binaries import debian_bin_dir, wheel_bin_dir
from service.embedded.faults import EmbeddedPostgresError
from service.embedded.postgres import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "debian_bin_dir", "wheel_bin_dir"]
