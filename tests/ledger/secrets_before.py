"""The service's secrets as a release before this one stored them: nothing says of event keys."""

import os

import psycopg

from service.ledger.encryption import MasterKeys
from service.ledger.service_keys import NAMES


def insert_secrets_of_before(owner: psycopg.Connection, ring: MasterKeys) -> None:
    """Store secrets that are bound to their names alone."""
    for name in NAMES:
        wrapped = ring.wrap(os.urandom(32), name.encode())
        row = [name, wrapped, ring.newest]
        owner.execute("insert into accounts.service_keys values (%s, %s, %s)", row)
