"""`claim-ledger storage check` with missing roles, and with a signer that may do too much."""

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Bucket, Client

from service.app.storage import storage_for
from service.cli.dev.gcs import json_side
from service.storage import check as checks
from service.storage.check import Row, check
from service.storage.google import GoogleObjectStore
from service.storage.port import StorageUnavailable
from tests.document_store import documents_on


@pytest.fixture
async def settings(database_url, tmp_path, store_credentials):
    """Return the settings of a service with a local store."""
    async with documents_on(database_url, tmp_path, store_credentials, follow=False) as one:
        yield one.world.service.settings


async def checked(settings) -> list[Row]:
    """Check the live mode's bucket."""
    bucket = settings.live_bucket
    return await check(lambda: storage_for(settings, bucket), bucket)


def without(monkeypatch, permission: str) -> None:
    """Remove a role from the account."""
    left = tuple(one for one in json_side.GRANTED if one != permission)
    monkeypatch.setattr(json_side, "GRANTED", left)


async def test_an_account_that_may_not_list(settings, monkeypatch):
    """The missing permission and its role are named, and nothing is uploaded."""
    without(monkeypatch, "storage.objects.list")
    *before, last = await checked(settings)
    assert [one.check for one in before] == ["bucket"]
    assert last == Row(
        "roles",
        "failed",
        "storage.objects.list is missing: grant roles/storage.objectViewer on the bucket",
    )


async def test_an_account_that_may_not_delete(settings, monkeypatch):
    """Claims work but sweeps cannot delete; the leftover upload is named."""
    without(monkeypatch, "storage.objects.delete")
    rows = {one.check: one for one in await checked(settings)}
    assert (rows["roles"].result, rows["round trip"].result) == ("note", "note")
    assert "documents sweep" in rows["roles"].detail
    assert "claim-ledger-check/" in rows["round trip"].detail


async def test_an_account_that_may_not_look_at_the_bucket(settings, monkeypatch):
    """CORS cannot be checked; everything else is."""
    without(monkeypatch, "storage.buckets.get")
    rows = await checked(settings)
    assert [one.check for one in rows if one.check == "cors"] == []
    assert {one.result for one in rows} == {"ok"}


async def test_a_signer_that_may_overwrite(settings, monkeypatch):
    """A successful second PUT is noted, with what to do."""
    monkeypatch.setattr(checks, "_put", lambda _signed: "200")
    rows = {one.check: one for one in await checked(settings)}
    assert rows["overwriting"].result == "note"
    assert "roles/storage.objectCreator alone" in rows["overwriting"].detail
    assert rows["round trip"].detail.startswith("the upload is not listed")


async def test_a_refused_put(settings, monkeypatch):
    """The store's own code is shown, and nothing is tried after it."""
    monkeypatch.setattr(checks, "_put", lambda _signed: "403 AccessDenied")
    last = (await checked(settings))[-1]
    assert last == Row("upload", "failed", "a signed PUT: 403 AccessDenied")


@pytest.mark.parametrize(
    ("rules", "result", "told"),
    [
        ([], "ok", "browsers may not"),
        ([{"method": ["GET"]}], "note", "no rule of the bucket allows PUT"),
        ([{"method": ["GET"]}, {"method": ["PUT"]}], "note", "may upload"),
    ],
)
async def test_cors_rules_are_explained(settings, monkeypatch, rules, result, told):
    """Rules are described by their effect on uploads."""

    async def cors(_store: object) -> list[dict[str, list[str]]]:
        return rules

    monkeypatch.setattr(checks.GoogleObjectStore, "cors", cors)
    (row,) = [one for one in await checked(settings) if one.check == "cors"]
    assert (row.result, told in row.detail) == (result, True)


@pytest.mark.parametrize(
    ("bucket", "result", "told"),
    [
        ({}, "ok", "gone at once"),
        ({"softDeletePolicy": {"retentionDurationSeconds": "0"}}, "ok", "gone at once"),
        ({"softDeletePolicy": {"retentionDurationSeconds": "604800"}}, "note", "for 7 days"),
        ({"versioning": {"enabled": True}}, "note", "nothing is erased"),
    ],
)
async def test_what_a_bucket_keeps_of_deleted_objects(monkeypatch, bucket, result, told):
    """Soft delete and versions are described by their effect on erasures."""
    store = GoogleObjectStore(AnonymousCredentials(), "documents")
    found = Bucket(Client("none", AnonymousCredentials()), "documents")
    vars(found)["_properties"] = bucket
    monkeypatch.setattr(Client, "get_bucket", lambda *_given, **_more: found)
    row = await checks._deletion(store)  # noqa: SLF001 - its row alone, without a store
    store.close()
    assert (row.check, row.result, told in row.detail) == ("deletion", result, True)


def test_an_unexpected_fault_is_one_line():
    """Errors without an explanation are shown as they are."""
    assert checks.error_text(StorageUnavailable("a\nb")) == "StorageUnavailable: a b"
