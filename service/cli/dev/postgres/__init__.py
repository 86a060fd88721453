"""A PostgreSQL server of our own, for `claim-ledger dev`, the tests and the bench."""

from service.cli.dev.postgres.binaries import debian_bin_dir, wheel_bin_dir
from service.cli.dev.postgres.faults import EmbeddedPostgresError
from service.cli.dev.postgres.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "debian_bin_dir", "wheel_bin_dir"]
