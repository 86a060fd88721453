output "database_host" {
  description = "Of the ledgers' URLs, and of the owner's: the name that the server's certificate has. The address is not in it."
  value       = one([for each in google_sql_database_instance.main.dns_names : each.name if each.connection_type == "PRIVATE_SERVICES_ACCESS" && each.dns_scope == "INSTANCE"])
}

output "database_address" {
  description = "To which database_host leads, in a private zone of your own where Google's DNS does not have it."
  value       = google_sql_database_instance.main.private_ip_address
}

output "redis" {
  description = "Of CLAIM_LEDGER_REDIS_URL; `gcloud redis instances get-auth-string claim-ledger` has the password."
  value       = "rediss://${google_redis_instance.limits.host}:${google_redis_instance.limits.port}"
}

output "buckets" {
  description = "CLAIM_LEDGER_LIVE_BUCKET, CLAIM_LEDGER_TEST_BUCKET, and those of CLAIM_LEDGER_ARCHIVE_URL and CLAIM_LEDGER_TILES_URL."
  value       = merge({ for name, one in google_storage_bucket.documents : name => one.name }, { archive = google_storage_bucket.archive.name, tiles = google_storage_bucket.tiles.name })
}

output "signer" {
  description = "CLAIM_LEDGER_STORAGE_SERVICE_ACCOUNT."
  value       = google_service_account.of["signer"].email
}

output "master_key" {
  description = "Of `claim-ledger keys-at-rest keygen --kms-key`."
  value       = google_kms_crypto_key.master.id
}
