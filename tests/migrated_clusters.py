"""A migrated PostgreSQL cluster, made once a run and copied for each server that a test starts.

initdb and the migrations take a second of CPU, a copy a twentieth of that.
"""

import fcntl
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from service.cli.dev.postgres import EmbeddedPostgres
from tests.databases import migrated_with_template, run


@dataclass(frozen=True)
class MigratedClusters:
    """Copies of one cluster, whose database of the owner is migrated, as is the tests' template.

    `home` is shared by the processes of a run, and may be empty; `bin_dir` has PostgreSQL's
    programs, None for the wheel's.
    """

    home: Path
    bin_dir: Path | None

    @property
    def quick(self) -> dict[str, str]:
        """Settings by which new passwords take one round of hashing at each connection, not 4,096.

        And the kernel copies a clone's files, an eighth cheaper than PostgreSQL. Of the wheel's
        alone: PostgreSQL 15 has neither choice.
        """
        return {} if self.bin_dir else {"scram_iterations": "1", "file_copy_method": "clone"}

    def server(self, data_dir: Path, **more: Any) -> EmbeddedPostgres:
        """Return a server, not started, on a copy in a directory; `more` is EmbeddedPostgres's."""
        made = self._made()
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # cp keeps the user that the server runs as.
        copying = ["cp", "-a", made / "cluster", made / "password", data_dir]
        subprocess.run(copying, check=True)
        return EmbeddedPostgres(data_dir, bin_dir=self.bin_dir, **more)

    def _made(self) -> Path:
        made = self.home / "migrated"
        with (self.home / "migrated.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                making = self.home / "migrating"
                shutil.rmtree(making, ignore_errors=True)
                self._make(making)
                making.rename(made)
        return made

    def _make(self, data_dir: Path) -> None:
        with EmbeddedPostgres(
            data_dir, bin_dir=self.bin_dir, settings=self.quick, durable=False
        ) as server:
            if self.quick:
                password = urlsplit(server.url).password
                run(server.url, f"alter role current_user password '{password}'")
            migrated_with_template(server.url)
