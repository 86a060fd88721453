locals {
  # Each is one of deploy/kubernetes, by workload identity; `signer` has no process: its name signs
  # uploads, and it can do nothing but create them.
  accounts = {
    api     = "The API's processes"
    worker  = "What follows the log"
    migrate = "Migrations, as the owner of the tables"
    secrets = "External Secrets, which reads the vault"
    backup  = "CloudNativePG's backups"
    team    = "The team's commands that remove or check documents"
    signer  = "Signs upload URLs"
    nodes   = "The cluster's nodes"
  }

  of_pods = {
    api     = "claim-ledger/claim-ledger-api"
    worker  = "claim-ledger/claim-ledger-worker"
    migrate = "claim-ledger/claim-ledger-migrate"
    secrets = "claim-ledger/claim-ledger-secrets"
    backup  = "claim-ledger/claim-ledger-db"
    team    = "claim-ledger/claim-ledger-team"
  }

  # What each may do in the buckets of documents. tests/deploy holds this to the product's calls.
  document_permissions = {
    # A signed PUT, once: without `delete` a second one cannot replace it.
    signer = ["storage.objects.create"]
    # Is what a claim refers to there?
    api = ["storage.objects.list"]
    # Reads contents to check them.
    worker = ["storage.objects.get", "storage.objects.list"]
    # `documents verify`, `documents sweep` and `storage check`.
    team = ["storage.buckets.get", "storage.objects.delete", "storage.objects.get", "storage.objects.list"]
  }

  # In the archive nothing is deleted or written twice, by anybody.
  archive_writers = ["api", "team", "worker"]
  signing         = ["api", "team"]
}

resource "google_service_account" "of" {
  for_each     = local.accounts
  account_id   = "claim-ledger-${each.key}"
  display_name = each.value
}

resource "google_service_account_iam_member" "pods" {
  for_each           = local.of_pods
  service_account_id = google_service_account.of[each.key].name
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${var.project}.svc.id.goog[${each.value}]"
}

resource "google_project_iam_custom_role" "documents" {
  for_each    = local.document_permissions
  role_id     = "claimLedgerDocuments_${each.key}"
  title       = "claim-ledger documents: ${each.key}"
  permissions = each.value
}

resource "google_storage_bucket_iam_member" "documents" {
  for_each = { for one in setproduct(local.documents, keys(local.document_permissions)) : join("-", one) => one }
  bucket   = google_storage_bucket.documents[each.value[0]].name
  role     = google_project_iam_custom_role.documents[each.value[1]].id
  member   = google_service_account.of[each.value[1]].member
}

resource "google_project_iam_custom_role" "archive" {
  role_id     = "claimLedgerArchive"
  title       = "claim-ledger archive: read, and write once"
  permissions = ["storage.objects.create", "storage.objects.get", "storage.objects.list"]
}

resource "google_storage_bucket_iam_member" "archive" {
  for_each = toset(local.archive_writers)
  bucket   = google_storage_bucket.archive.name
  role     = google_project_iam_custom_role.archive.id
  member   = google_service_account.of[each.value].member
}

# Of the tiles, `checkpoint` is replaced, which takes the right to delete.
resource "google_project_iam_custom_role" "tiles" {
  role_id     = "claimLedgerTiles"
  title       = "claim-ledger tiles: read, write and replace"
  permissions = ["storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"]
}

resource "google_storage_bucket_iam_member" "tiles" {
  bucket = google_storage_bucket.tiles.name
  role   = google_project_iam_custom_role.tiles.id
  member = google_service_account.of["worker"].member
}

# Whoever knows an object's name may read it; nobody may list them.
resource "google_storage_bucket_iam_member" "public_tiles" {
  count  = var.public_tiles ? 1 : 0
  bucket = google_storage_bucket.tiles.name
  role   = "roles/storage.legacyObjectReader"
  member = "allUsers"
}

# The plugin removes backups that are older than their retention.
resource "google_storage_bucket_iam_member" "backup" {
  bucket = google_storage_bucket.backup.name
  role   = "roles/storage.objectUser"
  member = google_service_account.of["backup"].member
}

resource "google_project_iam_custom_role" "sign" {
  role_id     = "claimLedgerSign"
  title       = "claim-ledger: sign in the signer's name"
  permissions = ["iam.serviceAccounts.signBlob"]
}

resource "google_service_account_iam_member" "sign" {
  for_each           = toset(local.signing)
  service_account_id = google_service_account.of["signer"].name
  role               = google_project_iam_custom_role.sign.id
  member             = google_service_account.of[each.value].member
}

# Nodes write logs and metrics, and read images; pods act as their own accounts.
resource "google_project_iam_member" "nodes" {
  for_each = toset(["roles/container.defaultNodeServiceAccount"])
  project  = var.project
  role     = each.value
  member   = google_service_account.of["nodes"].member
}

resource "google_artifact_registry_repository_iam_member" "nodes" {
  repository = google_artifact_registry_repository.images.name
  location   = var.region
  role       = "roles/artifactregistry.reader"
  member     = google_service_account.of["nodes"].member
}
