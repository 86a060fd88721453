terraform {
  required_version = ">= 1.9"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 8.7"
    }
  }
  # The state names secrets but has none of their values: keep it in a bucket of its own all the same.
  backend "gcs" {
    prefix = "claim-ledger"
  }
}

provider "google" {
  project = var.project
  region  = var.region
}
