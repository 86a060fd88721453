# Regional: a commit is on two zones' disks before it is answered. Leave this file out where the
# database is the cluster's own (deploy/kubernetes/components/postgres).
resource "google_sql_database_instance" "main" {
  name                = "claim-ledger"
  database_version    = "POSTGRES_18"
  region              = var.region
  deletion_protection = true
  encryption_key_name = google_kms_crypto_key.data.id

  settings {
    edition                     = "ENTERPRISE"
    tier                        = "db-custom-4-16384"
    availability_type           = "REGIONAL"
    disk_type                   = "PD_SSD"
    disk_size                   = 100
    disk_autoresize             = true
    deletion_protection_enabled = true
    retain_backups_on_delete    = true

    ip_configuration {
      ipv4_enabled    = false
      private_network = google_compute_network.main.id
      ssl_mode        = "ENCRYPTED_ONLY"
      server_ca_mode  = "GOOGLE_MANAGED_CAS_CA"
    }

    backup_configuration {
      enabled                        = true
      start_time                     = "02:00"
      location                       = var.region
      point_in_time_recovery_enabled = true
      transaction_log_retention_days = 7

      backup_retention_settings {
        retained_backups = 35
        retention_unit   = "COUNT"
      }
    }

    maintenance_window {
      day          = 7
      hour         = 3
      update_track = "stable"
    }

    # The three ledgers' limits, and the owner's ten: deploy/kubernetes has the processes.
    database_flags {
      name  = "max_connections"
      value = "600"
    }
    database_flags {
      name  = "log_checkpoints"
      value = "on"
    }
    database_flags {
      name  = "log_lock_waits"
      value = "on"
    }
    database_flags {
      name  = "log_connections"
      value = "on"
    }
    database_flags {
      name  = "log_disconnections"
      value = "on"
    }
    # Statements have personal data in them: none is logged.
    database_flags {
      name  = "log_statement"
      value = "none"
    }
    database_flags {
      name  = "log_min_duration_statement"
      value = "-1"
    }

    insights_config {
      query_insights_enabled  = true
      record_application_tags = false
      record_client_address   = false
    }
  }

  depends_on = [google_service_networking_connection.services, google_kms_crypto_key_iam_member.data]
}

# The owner is made by hand, so that no state has its password: `gcloud sql users create claim_ledger`.
# It may make roles; `claim-ledger migrate` makes the three logins of the ledgers.
resource "google_sql_database" "main" {
  name            = "claim_ledger"
  instance        = google_sql_database_instance.main.name
  deletion_policy = "ABANDON"
}
