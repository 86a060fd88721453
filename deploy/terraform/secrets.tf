locals {
  # Named as deploy/kubernetes refers to them. Their values are put in by hand or by your vault, never
  # here: `gcloud secrets versions add claim-ledger-… --data-file=-`.
  secrets = toset([
    "claim-ledger-accounts-database-url",
    "claim-ledger-checkpoint-keys",
    "claim-ledger-database-authority",
    "claim-ledger-database-url",
    "claim-ledger-live-database-url",
    "claim-ledger-master-keys",
    "claim-ledger-owner-password",
    "claim-ledger-redis-authority",
    "claim-ledger-redis-url",
    "claim-ledger-smtp-url",
    "claim-ledger-test-database-url",
  ])
}

resource "google_secret_manager_secret" "of" {
  for_each  = local.secrets
  secret_id = each.value
  # Without the master keys, personal data is lost: a name that leaves the list above ends an apply, and who
  # destroys a version has thirty days to take it back.
  deletion_protection = true
  version_destroy_ttl = "2592000s"

  replication {
    user_managed {
      replicas {
        location = var.region
        customer_managed_encryption {
          kms_key_name = google_kms_crypto_key.data.id
        }
      }
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each  = local.secrets
  secret_id = google_secret_manager_secret.of[each.value].id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.of["secrets"].member
}
