# `terraform test` plans all of it and asks nothing of Google: the provider's answers are made up.
mock_provider "google" {}

variables {
  project     = "example"
  public_host = "api.example.com"
  alert_email = "alerts@example.com"
}

run "as_it_stands" {
  command = plan

  assert {
    condition     = length(google_storage_bucket.documents["live"].cors) == 0
    error_message = "A page may upload although no origin is named."
  }

  assert {
    condition     = google_storage_bucket.tiles.public_access_prevention == "enforced" && length(google_storage_bucket_iam_member.public_tiles) == 0
    error_message = "Everybody may read the tiles although nobody said so."
  }
}

run "with_browsers_operators_and_public_tiles" {
  command = plan

  variables {
    browser_origins = ["https://example.com"]
    operator_ranges = [{ name = "office", cidr = "192.0.2.0/24" }]
    public_tiles    = true
  }

  assert {
    condition     = google_storage_bucket.documents["live"].cors[0].origin[0] == "https://example.com"
    error_message = "The pages of the origin that is named may not upload."
  }

  assert {
    condition     = google_storage_bucket.tiles.public_access_prevention == "inherited" && google_storage_bucket_iam_member.public_tiles[0].member == "allUsers"
    error_message = "Not everybody may read the tiles."
  }
}
