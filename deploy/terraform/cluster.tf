# Autopilot: nodes are Google's to patch, network policies are enforced, and pods act by workload
# identity. In three zones.
resource "google_container_cluster" "main" {
  name                = "claim-ledger"
  location            = var.region
  enable_autopilot    = true
  deletion_protection = true
  network             = google_compute_network.main.id
  subnetwork          = google_compute_subnetwork.nodes.id

  resource_labels = {
    application = "claim-ledger"
  }

  # Operators sign in as themselves: no certificate that nobody can revoke.
  master_auth {
    client_certificate_config {
      issue_client_certificate = false
    }
  }

  ip_allocation_policy {
    cluster_secondary_range_name  = "pods"
    services_secondary_range_name = "services"
  }

  private_cluster_config {
    enable_private_nodes    = true
    enable_private_endpoint = false
    master_ipv4_cidr_block  = "10.12.0.0/28"
  }

  master_authorized_networks_config {
    dynamic "cidr_blocks" {
      for_each = var.operator_ranges
      content {
        display_name = cidr_blocks.value.name
        cidr_block   = cidr_blocks.value.cidr
      }
    }
  }

  release_channel {
    channel = "REGULAR"
  }

  maintenance_policy {
    recurring_window {
      start_time = "2026-01-04T01:00:00Z"
      end_time   = "2026-01-04T07:00:00Z"
      recurrence = "FREQ=WEEKLY;BYDAY=SA,SU"
    }
  }

  cluster_autoscaling {
    auto_provisioning_defaults {
      service_account = google_service_account.of["nodes"].email
      oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    }
  }

  binary_authorization {
    evaluation_mode = "PROJECT_SINGLETON_POLICY_ENFORCE"
  }

  secret_manager_config {
    enabled = false
  }
}
