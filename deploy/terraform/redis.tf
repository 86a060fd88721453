# One minute of counts: nothing in it is backed up. Without it the processes limit each for itself.
resource "google_redis_instance" "limits" {
  name                    = "claim-ledger"
  region                  = var.region
  tier                    = "STANDARD_HA"
  memory_size_gb          = 1
  redis_version           = "REDIS_7_2"
  auth_enabled            = true
  transit_encryption_mode = "SERVER_AUTHENTICATION"
  connect_mode            = "PRIVATE_SERVICE_ACCESS"
  authorized_network      = google_compute_network.main.id
  customer_managed_key    = google_kms_crypto_key.data.id
  depends_on              = [google_service_networking_connection.services, google_kms_crypto_key_iam_member.data]
}
