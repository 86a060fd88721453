# `master` wraps the service's master keys (`keys-at-rest keygen --kms-key`): it is asked once, when a
# process starts. `data` encrypts what Google keeps.
resource "google_kms_key_ring" "main" {
  name       = "claim-ledger"
  location   = var.region
  depends_on = [google_project_service.needed]
}

resource "google_kms_crypto_key" "master" {
  name            = "master"
  key_ring        = google_kms_key_ring.main.id
  purpose         = "ENCRYPT_DECRYPT"
  rotation_period = "7776000s"

  version_template {
    algorithm        = "GOOGLE_SYMMETRIC_ENCRYPTION"
    protection_level = "HSM"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key" "data" {
  name            = "data"
  key_ring        = google_kms_key_ring.main.id
  purpose         = "ENCRYPT_DECRYPT"
  rotation_period = "7776000s"

  lifecycle {
    prevent_destroy = true
  }
}

# What keeps data for us encrypts with `data`, as the services' own agents. In a new project they are made
# first: `gcloud beta services identity create --service=redis.googleapis.com`, and so on.
data "google_project" "main" {}

locals {
  agents = {
    artifactregistry = "gcp-sa-artifactregistry"
    redis            = "cloud-redis"
    secretmanager    = "gcp-sa-secretmanager"
    sqladmin         = "gcp-sa-cloud-sql"
  }
}

data "google_storage_project_service_account" "storage" {}

resource "google_kms_crypto_key_iam_member" "data" {
  for_each = merge(
    { for name, agent in local.agents : name => "serviceAccount:service-${data.google_project.main.number}@${agent}.iam.gserviceaccount.com" },
    { storage = "serviceAccount:${data.google_storage_project_service_account.storage.email_address}" },
  )
  crypto_key_id = google_kms_crypto_key.data.id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value
}

# The processes unwrap; wrapping a new key is an operator's.
resource "google_kms_crypto_key_iam_member" "master" {
  for_each      = toset(["api", "worker", "migrate", "team"])
  crypto_key_id = google_kms_crypto_key.master.id
  role          = "roles/cloudkms.cryptoKeyDecrypter"
  member        = google_service_account.of[each.value].member
}
