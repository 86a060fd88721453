locals {
  documents = toset(["live", "test"])
}

# Documents: written by signed URLs, never overwritten, and for a week after a deletion still there: an
# erasure is complete after that (docs/privacy.md).
resource "google_storage_bucket" "documents" {
  for_each                    = local.documents
  name                        = "${var.project}-claim-ledger-${each.value}"
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  soft_delete_policy {
    retention_duration_seconds = 604800
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.data.id
  }

  # Uploads that no claim refers to are swept by `claim-ledger documents sweep`; here only what a
  # broken upload leaves.
  lifecycle_rule {
    condition {
      age = 1
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  dynamic "cors" {
    for_each = length(var.browser_origins) > 0 ? [1] : []
    content {
      origin          = var.browser_origins
      method          = ["PUT"]
      response_header = ["Content-Type", "x-goog-content-length-range", "x-goog-if-generation-match"]
      max_age_seconds = 3600
    }
  }

  logging {
    log_bucket = google_storage_bucket.access_logs.name
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

# Checkpoints, erasures and notes of sent mails: outside the database, and nobody can delete one, an
# administrator of the project included. The lock cannot be taken back.
resource "google_storage_bucket" "archive" {
  name                        = "${var.project}-claim-ledger-archive"
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  retention_policy {
    is_locked        = true
    retention_period = var.archive_retention_days * 86400
  }

  # Retention takes its place.
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.data.id
  }

  logging {
    log_bucket = google_storage_bucket.access_logs.name
  }

  lifecycle {
    prevent_destroy = true
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

# The logs as tiles, which the worker writes behind the checkpoints. Not in the archive: `checkpoint` is
# replaced there, and its lock would refuse that. No versions, as there; what is replaced or deleted is
# still there for a week, and all of it follows from the log.
resource "google_storage_bucket" "tiles" {
  name                        = "${var.project}-claim-ledger-tiles"
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = var.public_tiles ? "inherited" : "enforced"

  soft_delete_policy {
    retention_duration_seconds = 604800
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.data.id
  }

  logging {
    log_bucket = google_storage_bucket.access_logs.name
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

# Base backups and write-ahead log of CloudNativePG; Cloud SQL keeps its own.
resource "google_storage_bucket" "backup" {
  name                        = "${var.project}-claim-ledger-backup"
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  soft_delete_policy {
    retention_duration_seconds = 1209600
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.data.id
  }

  logging {
    log_bucket = google_storage_bucket.access_logs.name
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

# Who read which document, for a year: with its path, which has the entity's id.
resource "google_storage_bucket" "access_logs" {
  name                        = "${var.project}-claim-ledger-access-logs"
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  encryption {
    default_kms_key_name = google_kms_crypto_key.data.id
  }

  lifecycle_rule {
    condition {
      age = 365
    }
    action {
      type = "Delete"
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}
