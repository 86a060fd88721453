"""deploy/terraform has only what its provider knows, and gives the product what it needs."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from service.archive.port import Archive, OpenArchive
from service.storage.port import ObjectStore, UploadSigner
from tests.deploy.manifests import KUBERNETES, OVERLAYS, manifests, named, remote_keys, settings_of
from tests.deploy.provider_schema import STORED
from tests.deploy.terraform import Block, blocks, local, resource

SCHEMA = json.loads(STORED.read_text())
META = {"count", "for_each", "provider", "depends_on", "lifecycle"}
"""What Terraform itself understands in every resource."""
CREATE, DELETE = "storage.objects.create", "storage.objects.delete"
GET, LIST = "storage.objects.get", "storage.objects.list"
DOCUMENTS = {"sign": {CREATE}, "under": {LIST}, "each": {LIST}, "part": {GET}, "delete": {DELETE}}
ARCHIVE = {"put": {CREATE}, "get": {GET}, "names": {LIST}, "folders": {LIST}}
TILES = ARCHIVE | {"replace": {CREATE, DELETE}}
"""The right that each call of our ports takes."""
OF_THE_CHECK = {"storage.buckets.get"}
"""What `storage check` asks beside: the bucket's rules for browsers."""
IF_PUBLIC = '${var.public_tiles ? "inherited" : "enforced"}'
PRODUCTION = settings_of("production")


def faults(one: Block) -> Iterator[str]:
    """Yield what the provider does not know, or misses."""
    known = SCHEMA["arguments"][f"{one.kind} {one.type}"]
    where = f"{one.type}.{one.name}"
    yield from _faults({k: v for k, v in one.body.items() if k not in META}, known, where)


def _faults(body: dict[str, Any], known: dict[str, Any], where: str) -> Iterator[str]:
    body, inner = dict(body), {}
    for dynamic in body.pop("dynamic", []):
        ((name, block),) = dynamic.items()
        (inner[name],) = block["content"]
        body[name] = [inner[name]]
    for name, value in body.items():
        if name not in known:
            yield f"{where}: unknown: {name}"
        elif known[name].get("computed"):
            yield f"{where}: only read: {name}"
        elif known[name].get("block"):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    yield from _faults(one, known[name]["block"], f"{where}.{name}")
    for name, row in known.items():
        if row.get("required") and name not in body:
            yield f"{where}: missing: {name}"


def test_every_argument_is_the_providers():
    """None is unknown, none that is required is missing, in blocks and dynamic ones too."""
    with_types = [one for one in blocks() if one.kind in {"resource", "data"}]
    assert len(with_types) > 30
    assert [fault for one in with_types for fault in faults(one)] == []


def test_the_schema_is_the_version_that_is_named():
    """The provider of the configuration is the one whose schema is stored."""
    (terraform,) = [one.body for one in blocks() if one.kind == "terraform"]
    (google,) = [one["google"] for one in terraform["required_providers"]]
    wanted = google["version"].removeprefix("~> ").split(".")
    assert SCHEMA["provider"].split(".")[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"secret_id": "a", "replication": [], "secret": "b"}, "unknown: secret"),
        ({"secret_id": "a", "replication": [], "create_time": "b"}, "only read: create_time"),
        ({"replication": []}, "missing: secret_id"),
        ({"secret_id": "a", "replication": [{"auto": [{"key": 1}]}]}, "unknown: key"),
    ],
)
def test_faults_are_found(body, fault):
    """Misspelt and missing arguments, in blocks too; and what Google alone says."""
    found = list(faults(Block("resource", "google_secret_manager_secret", "x", body)))
    assert any(fault in one for one in found), found


def test_rights_are_what_the_product_calls():
    """The signer creates uploads and can do nothing else; only the team's commands remove one."""
    assert set(DOCUMENTS) == _calls(UploadSigner) | _calls(ObjectStore)
    assert set(ARCHIVE) == _calls(Archive)
    granted = {name: set(rights) for name, rights in local("document_permissions").items()}
    assert granted["signer"] == DOCUMENTS["sign"]
    assert granted["team"] == set().union(*DOCUMENTS.values()) - {CREATE} | OF_THE_CHECK
    assert granted["api"] == DOCUMENTS["under"]
    assert granted["worker"] == DOCUMENTS["part"] | DOCUMENTS["each"]
    assert {name for name, rights in granted.items() if DELETE in rights} == {"team"}
    archive = resource("google_project_iam_custom_role", "archive")["permissions"]
    assert set(archive) == set().union(*ARCHIVE.values())
    assert set(TILES) == _calls(Archive) | _calls(OpenArchive)
    tiles = resource("google_project_iam_custom_role", "tiles")["permissions"]
    assert set(tiles) == set().union(*TILES.values())
    member = resource("google_storage_bucket_iam_member", "tiles")["member"]
    assert member == '${google_service_account.of["worker"].member}'
    assert resource("google_project_iam_custom_role", "sign")["permissions"] == [
        "iam.serviceAccounts.signBlob"
    ]


def test_the_archive_is_locked_and_documents_can_come_back():
    """Nobody can shorten the archive's retention; what is deleted is kept for a week."""
    (retention,) = resource("google_storage_bucket", "archive")["retention_policy"]
    assert retention["is_locked"] is True
    documents = resource("google_storage_bucket", "documents")
    assert documents["soft_delete_policy"][0]["retention_duration_seconds"] >= 604_800
    assert {"AbortIncompleteMultipartUpload"} == {
        one["action"][0]["type"] for one in documents["lifecycle_rule"]
    }  # what a claim refers to is never removed by age
    for one in blocks():
        if one.type == "google_storage_bucket":
            public = one.body["public_access_prevention"]
            assert public == (IF_PUBLIC if one.name == "tiles" else "enforced")
            assert one.body["uniform_bucket_level_access"] is True


def test_tiles_can_be_replaced_and_are_public_only_if_somebody_says_so():
    """No lock, and names are known, not listed, to strangers."""
    assert "retention_policy" not in resource("google_storage_bucket", "tiles")
    (option,) = [one.body for one in blocks() if one[::2] == ("variable", "public_tiles")]
    assert option["default"] is False
    public = resource("google_storage_bucket_iam_member", "public_tiles")
    assert public["count"] == "${var.public_tiles ? 1 : 0}"
    assert (public["member"], public["role"]) == ("allUsers", "roles/storage.legacyObjectReader")


def test_the_database_survives_a_zone_and_a_mistake():
    """Two zones, any moment of the last week, no public address, TLS alone."""
    (settings,) = resource("google_sql_database_instance", "main")["settings"]
    (backup,), (network,) = settings["backup_configuration"], settings["ip_configuration"]
    assert settings["availability_type"] == "REGIONAL"
    assert backup["point_in_time_recovery_enabled"] is True
    assert (network["ipv4_enabled"], network["ssl_mode"]) == (False, "ENCRYPTED_ONLY")
    flags = {one["name"]: one["value"] for one in settings["database_flags"]}
    cluster = named("Cluster", "claim-ledger-db", KUBERNETES / "components" / "postgres")["spec"]
    assert flags["max_connections"] == cluster["postgresql"]["parameters"]["max_connections"]


def test_secrets_survive_a_mistake():
    """Neither is one deleted by an apply, nor a version of it destroyed at once."""
    secret = resource("google_secret_manager_secret", "of")
    assert secret["deletion_protection"] is True
    assert int(secret["version_destroy_ttl"].removesuffix("s")) >= 604_800


def test_urls_name_what_the_databases_certificate_has():
    """`verify-full` refuses an address that is not in it."""
    (host,) = [one.body["value"] for one in blocks() if one[::2] == ("output", "database_host")]
    assert ".dns_names" in host
    assert "ip_address" not in host


def test_the_manifests_and_terraform_name_the_same():
    """Secrets, accounts, buckets, and the networks of the policies."""
    secrets = re.findall(r"claim-ledger-[a-z-]+", str(local("secrets")))
    assert set(remote_keys(KUBERNETES).values()) == set(secrets)
    annotated = {one["metadata"]["name"]: _account(one) for one in _identities()}
    for short, pod in local("of_pods").items():
        namespace, name = pod.split("/")
        assert namespace == "claim-ledger"
        assert annotated.pop(name) == f"claim-ledger-{short}"
    assert annotated == {}
    names = {"LIVE_BUCKET": "live", "TEST_BUCKET": "test"}
    for setting, name in names.items():
        assert PRODUCTION[f"CLAIM_LEDGER_{setting}"].endswith(f"-claim-ledger-{name}")
    assert PRODUCTION["CLAIM_LEDGER_STORAGE_SERVICE_ACCOUNT"].startswith("claim-ledger-signer@")
    assert "-claim-ledger-archive/" in PRODUCTION["CLAIM_LEDGER_ARCHIVE_URL"]
    assert PRODUCTION["CLAIM_LEDGER_TILES_URL"].endswith("-claim-ledger-tiles")
    services = resource("google_compute_global_address", "services")
    ((rule,),) = [named("NetworkPolicy", "rate-limits", OVERLAYS / "production")["spec"]["egress"]]
    peered = f"{services['address']}/{services['prefix_length']}"
    assert [one["ipBlock"]["cidr"] for one in rule["to"]] == [peered]
    pods = resource("google_compute_subnetwork", "nodes")["secondary_ip_range"][0]
    assert PRODUCTION["CLAIM_LEDGER_TRUSTED_PROXIES"] == pods["ip_cidr_range"]


def _calls(port: type) -> set[str]:
    return {name for name in vars(port) if not name.startswith("_")} - {"close"}


def _identities() -> Iterator[dict[str, Any]]:
    for one in manifests(OVERLAYS / "production"):
        if one["kind"] == "ServiceAccount" or "serviceAccountTemplate" in one.get("spec", {}):
            yield one


def _account(one: dict[str, Any]) -> str:
    is_account = one["kind"] == "ServiceAccount"
    metadata = (one if is_account else one["spec"]["serviceAccountTemplate"])["metadata"]
    return metadata["annotations"]["iam.gke.io/gcp-service-account"].partition("@")[0]
