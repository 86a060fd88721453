"""The team's commands on a running `claim-ledger dev`."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from service.facts.caller import LEDGERS
from tests.dev_process import Dev, run
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until

EVENTS = """
select (select count(*) from accounts.events)
     + (select count(*) from live.events)
     + (select count(*) from test.events)
"""


BEHIND = """
select 1 from {0}.head as h, {0}.subscriptions as s
where s.position < h.size or exists (select from {0}.pending)
"""


@dataclass
class Team:
    """Runs commands on a dev as the service's team."""

    dev: Dev

    def raw(self, *arguments: str | bytes) -> subprocess.CompletedProcess[str]:
        """Run a command on the dev."""
        return run(*arguments, "--data-dir", self.dev.data_dir)

    def raw_help(self, *group: str) -> str:
        """Return the help of a group of commands."""
        return run(*group, "--help").stdout

    def answer(self, *arguments: str | bytes) -> tuple[int, dict[str, Any]]:
        """Run a command with `--json`; return its exit code and the object that it printed."""
        done = self.raw(*arguments, "--json")
        assert done.stdout.count("\n") == 1
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return done.returncode, answer

    def do(self, *arguments: str) -> dict[str, Any]:
        """Run a command that must succeed."""
        code, answer = self.answer(*arguments)
        assert code == 0, answer
        return answer

    def refused(self, *arguments: str | bytes) -> str:
        """Run a command that must be refused; return the code in its envelope."""
        code, answer = self.answer(*arguments)
        assert code == 1, answer
        assert {"error", "code", "message"} <= set(answer)
        return answer["code"]

    def events(self) -> int:
        """Return how many events all ledgers hold."""
        with psycopg.connect(self.dev.facts["database_url"]) as connection:
            row = connection.execute(EVENTS).fetchone()
        assert row is not None
        return row[0]

    def wait_for_followers(self) -> None:
        """Wait until everything that follows a log has come to its end, in every ledger.

        Of accounts first: what follows it appends to the ledger of test mode.
        """
        with psycopg.connect(self.dev.facts["database_url"], autocommit=True) as connection:
            for ledger in LEDGERS:
                behind = BEHIND.format(ledger)
                until(lambda behind=behind: connection.execute(behind).fetchone() is None)

    @contextmanager
    def unverified(self, ledger: str) -> Iterator[None]:
        """Keep the worker's verification from a ledger that a test alters for a while.

        It may look at that moment, and would show what it found long after that is mended.
        """
        with psycopg.connect(self.dev.facts["database_url"]) as holder:
            holder.execute(f"select from {ledger}.log_verification for update".encode())
            yield

    def call(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request with a partner's key."""
        return httpx.request(
            method,
            f"{self.dev.facts['base_url']}{path}",
            headers={"Authorization": f"Bearer {key}"},
            **more,
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        )

    def partner(self) -> tuple[str, str, str]:
        """Return a new approved partner and its live and test tokens."""
        partner_id = self.do("partners", "add", "A partner", "--email", mailbox())["partner_id"]
        self.do("partners", "approve", partner_id)
        live, test = (
            self.do("keys", "issue", partner_id, "--mode", mode)["token"]
            for mode in ("live", "test")
        )
        return partner_id, live, test

    def link(self, key: str) -> str:
        """Return a fresh connect link of a partner."""
        body = {"partner_user_id": "u"}
        return self.call(key, "POST", "/connect-requests", json=body).json()["connect_url"]


def mailbox() -> str:
    """Return an email address that is not in use yet."""
    return f"{uuid4().hex}@example.com"
