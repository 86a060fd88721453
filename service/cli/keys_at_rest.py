"""`claim-ledger keys-at-rest`: the keys in the database, and the master keys that wrap them."""

import base64
import secrets
from collections.abc import AsyncIterator, Sequence

import click

from service.app.bootstrap import Service
from service.app.key_service import KeyServiceFault, kms_name, new_key
from service.app.setting import SettingsError
from service.app.settings import some
from service.cli.faults import one_line
from service.cli.options import json_option
from service.cli.output import show
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields, Findings, Fine, listed
from service.core.counted import counted
from service.ledger.encryption import KEY_BYTES
from service.ledger.ledger import Ledger
from service.ledger.scan import appended
from service.privacy.erasure_list import ErasureList
from service.privacy.faulty_keys import FaultyKey, faulty_by_list, faulty_by_log, faulty_in
from service.privacy.lost_keys import NAMED_MAX, find_lost_keys
from service.privacy.rotation import (
    DATA_KEYS,
    EVENT_KEYS,
    SERVICE_KEYS,
    SESSIONS,
    SIGN_IN_LINKS,
    Rotation,
    WrappedTable,
)


@click.command()
@click.option(
    "--kms-key",
    metavar="NAME",
    help="Wrap it with Google Cloud KMS: projects/…/locations/…/keyRings/…/cryptoKeys/…",
)
@json_option
def keygen(kms_key: str | None, *, as_json: bool) -> None:
    """Generate a master key for the settings: in the clear, or wrapped by Google Cloud KMS.

    The key itself is shown only without --kms-key. `keys-at-rest rotate` puts it into use.
    """
    if kms_key is None:
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    else:
        with one_line(ValueError, KeyServiceFault, SettingsError):
            key = new_key(kms_name(kms_key), some("KMS_ENDPOINT")["KMS_ENDPOINT"]).text
    show({"master_key": key}, as_json=as_json)


@team_command
async def rotate(target: Target) -> Fields:
    """Wrap all keys with the newest master key, while the service runs.

    First add the new key behind the old one in every process's ring, then put it first in all of
    them. Exits with 1 if a key cannot be unwrapped, or a process still wraps keys with an older
    master key.
    """
    return await rotate_all(target.service)


@team_command
async def verify(target: Target) -> Fields:
    """Find keys that are lost, altered, swapped, mislabelled, or back after an erasure.

    `lost_keys` are gone although no erasure explains it: an erasure leaves a `PersonalDataErased`
    in the log. `unfit_keys` do not open what is encrypted under them. `faulty_keys` do not open as
    what they are stored as, or came back after their subject was erased; with an archive, the list
    of erasures counts, too. So does what the log says of event keys. Each list names at most 1,000.
    Exits with 1 if there are any. `events_foreign` counts events that name a key and were not
    written by this service: they say nothing of it, and `audit verify` reports them.
    """
    return await verify_all(target.service)


async def verify_all(service: Service) -> Fields:
    """Check every ledger's keys; return Findings if some are lost or wrong."""
    events_lost, lost, events_unfit, unfit = 0, list[Fields](), 0, list[Fields]()
    events_foreign = 0
    for ledger in service.ledgers:
        with progress(f"searching {ledger.name}", await appended(ledger)) as advance:
            found = await find_lost_keys(ledger, advance)
        events_lost += found.events
        events_unfit += found.unfit_events
        events_foreign += found.foreign_events
        lost += [{"ledger": ledger.name} | key._asdict() for key in found.keys]
        unfit += [{"ledger": ledger.name} | key._asdict() for key in found.unfit_keys]
    keys_faulty, faulty = 0, list[Fields]()
    async for one in _faulty(service):
        keys_faulty += 1
        if len(faulty) < NAMED_MAX:
            faulty.append(one._asdict())
    answer: Fields = {
        "events_lost": events_lost,
        "lost_keys": lost,
        "events_unfit": events_unfit,
        "unfit_keys": unfit,
        "events_foreign": events_foreign,
        "keys_faulty": keys_faulty,
        "faulty_keys": faulty,
    }
    return verified_answer(answer, [ledger.name for ledger in service.ledgers])


def verified_answer(answer: Fields, ledgers: Sequence[str]) -> Fields:
    """Return what a verification found, with its verdict."""
    wrong = [
        (
            answer["events_lost"],
            "event that nobody can read: its key is gone, and no erasure says so",
            "events that nobody can read: their keys are gone, and no erasure says so",
        ),
        (
            answer["events_unfit"],
            "event that its key does not open",
            "events that their keys do not open",
        ),
        (
            answer["keys_faulty"],
            "key that is not what it is stored as",
            "keys that are not what they are stored as",
        ),
    ]
    faults = [counted(number, one, several) for number, one, several in wrong if number]
    if faults:
        return Findings(answer, listed(faults))
    return Fine(answer, f"every key of {counted(len(ledgers), 'ledger')} opens what is under it")


async def _faulty(service: Service) -> AsyncIterator[FaultyKey]:
    for ledger, kept in _wrapped_tables(service):
        async for one in faulty_in(ledger, kept, service.accounts.master_keys):
            yield one
    async for one in faulty_by_log(service.accounts):
        yield one
    if service.archive is not None:
        secrets = service.secrets.get
        listed = ErasureList(service.archive, secrets, takes_without_mac=True)  # it applies none
        for ledger in service.ledgers:
            async for one in faulty_by_list(ledger, listed):
                yield one


def _wrapped_tables(service: Service) -> list[tuple[Ledger, WrappedTable]]:
    tables = [(ledger, DATA_KEYS) for ledger in service.ledgers]
    of_accounts = (SERVICE_KEYS, EVENT_KEYS, SESSIONS, SIGN_IN_LINKS)
    return tables + [(service.accounts, kept) for kept in of_accounts]


async def rotate_all(service: Service) -> Fields:
    """Rewrap every ledger's keys; return Findings if some are left."""
    ring = service.accounts.master_keys
    newest, *older = ring.ids
    in_use: set[str] = set()
    missing: set[str] = set()
    rows: list[Fields] = []
    for ledger, kept in _wrapped_tables(service):
        rotation = Rotation(ledger.database, kept, ring)
        with progress(f"{ledger.name} {kept.name}", await rotation.older()) as advance:
            outcome = await rotation.run(advance)
        in_use.update(outcome.wrapped)
        missing.update(outcome.unopened)
        row = {
            "ledger": ledger.name,
            "keys": kept.name,
            "rewrapped": outcome.rewrapped,
            "newest": outcome.wrapped[newest],
            "older": outcome.wrapped.total() - outcome.wrapped[newest],
            "unopened": outcome.unopened.total(),
        }
        rows.append(row)
    answer = {
        "newest": newest,
        "unused": [key for key in older if key not in in_use],
        "still_used": [key for key in older if key in in_use],
        "not_opened_by_ring": sorted(missing),
        "before_removing": _advice(older),
        "tables": rows,
    }
    left = sum(row["older"] for row in rows)
    rewrapped = sum(row["rewrapped"] for row in rows)
    if left:
        return Findings(answer, f"{counted(left, 'key')} still wrapped by an older master key")
    return Fine(answer, f"every key is wrapped by {newest}, {rewrapped:,} of them anew")


def _advice(older: list[str]) -> str | None:
    """Return a warning about what counts cannot show: which key a running process wraps with."""
    if not older:
        return None
    return (
        f"Whether a running process still wraps new keys with {', '.join(older)} cannot be known "
        "from here. Restart every process with the new ring, then run this again; remove only "
        "what is unused then."
    )
