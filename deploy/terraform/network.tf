resource "google_compute_network" "main" {
  name                    = "claim-ledger"
  auto_create_subnetworks = false
  depends_on              = [google_project_service.needed]
}

resource "google_compute_subnetwork" "nodes" {
  name                     = "claim-ledger"
  network                  = google_compute_network.main.id
  region                   = var.region
  ip_cidr_range            = "10.10.0.0/20"
  private_ip_google_access = true

  secondary_ip_range {
    range_name    = "pods"
    ip_cidr_range = "10.20.0.0/16"
  }

  secondary_ip_range {
    range_name    = "services"
    ip_cidr_range = "10.11.0.0/20"
  }

  log_config {
    aggregation_interval = "INTERVAL_5_MIN"
    flow_sampling        = 0.5
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

# The range of Cloud SQL and Memorystore, which the manifests' policies name.
resource "google_compute_global_address" "services" {
  name          = "claim-ledger-services"
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  address       = "10.30.0.0"
  prefix_length = 16
  network       = google_compute_network.main.id
}

resource "google_service_networking_connection" "services" {
  network                 = google_compute_network.main.id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.services.name]
}

# Nodes have no public addresses: mail and the public clouds are reached through here.
resource "google_compute_router" "out" {
  name    = "claim-ledger"
  network = google_compute_network.main.id
  region  = var.region
}

resource "google_compute_router_nat" "out" {
  name                               = "claim-ledger"
  router                             = google_compute_router.out.name
  region                             = var.region
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
