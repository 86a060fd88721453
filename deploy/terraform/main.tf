locals {
  services = [
    "artifactregistry.googleapis.com",
    "cloudkms.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "iamcredentials.googleapis.com",
    "monitoring.googleapis.com",
    "redis.googleapis.com",
    "secretmanager.googleapis.com",
    "servicenetworking.googleapis.com",
    "sqladmin.googleapis.com",
    "storage.googleapis.com",
  ]
}

resource "google_project_service" "needed" {
  for_each           = toset(local.services)
  service            = each.value
  disable_on_destroy = false
}

# Tags cannot be moved: what was rolled out under one stays what it is.
resource "google_artifact_registry_repository" "images" {
  repository_id = "claim-ledger"
  location      = var.region
  format        = "DOCKER"
  kms_key_name  = google_kms_crypto_key.data.id

  docker_config {
    immutable_tags = true
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}
