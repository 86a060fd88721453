# What Google sees from outside; the service's own alerts are deploy/alerts.yml.
resource "google_monitoring_notification_channel" "team" {
  display_name = "claim-ledger"
  type         = "email"
  labels = {
    email_address = var.alert_email
  }
}

resource "google_monitoring_uptime_check_config" "ready" {
  display_name     = "claim-ledger is ready"
  timeout          = "10s"
  period           = "60s"
  selected_regions = ["EUROPE", "USA_VIRGINIA", "ASIA_PACIFIC"]

  http_check {
    path         = "/health/ready"
    port         = 443
    use_ssl      = true
    validate_ssl = true
  }

  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project
      host       = var.public_host
    }
  }
}

locals {
  alerts = {
    away = {
      title    = "claim-ledger cannot be reached from outside"
      filter   = "resource.type = \"uptime_url\" AND metric.type = \"monitoring.googleapis.com/uptime_check/check_passed\" AND metric.labels.check_id = \"${google_monitoring_uptime_check_config.ready.uptime_check_id}\""
      aligner  = "ALIGN_NEXT_OLDER"
      reducer  = "REDUCE_COUNT_FALSE"
      above    = 1
      duration = "120s"
      section  = "postgresql-down"
    }
    disk = {
      title    = "The database's disk is 85 % full"
      filter   = "resource.type = \"cloudsql_database\" AND metric.type = \"cloudsql.googleapis.com/database/disk/utilization\""
      aligner  = "ALIGN_MEAN"
      reducer  = "REDUCE_MAX"
      above    = 0.85
      duration = "300s"
      section  = "disk-full"
    }
    connections = {
      title    = "The database has 500 of 600 connections"
      filter   = "resource.type = \"cloudsql_database\" AND metric.type = \"cloudsql.googleapis.com/database/postgresql/num_backends\""
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_SUM"
      above    = 500
      duration = "300s"
      section  = "connections"
    }
    redis = {
      title    = "Redis uses 80 % of its memory"
      filter   = "resource.type = \"redis_instance\" AND metric.type = \"redis.googleapis.com/stats/memory/usage_ratio\""
      aligner  = "ALIGN_MEAN"
      reducer  = "REDUCE_MAX"
      above    = 0.8
      duration = "300s"
      section  = "redis-down"
    }
  }
}

resource "google_monitoring_alert_policy" "of" {
  for_each              = local.alerts
  display_name          = each.value.title
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = [google_monitoring_notification_channel.team.id]

  conditions {
    display_name = each.value.title
    condition_threshold {
      filter          = each.value.filter
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.above
      duration        = each.value.duration
      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = each.value.aligner
        cross_series_reducer = each.value.reducer
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "deploy/runbook.md#${each.value.section}"
  }
}

# A key that is destroyed or disabled, or a bucket's policy that changes, is nobody's daily work.
resource "google_logging_metric" "rare" {
  name   = "claim-ledger/keys-and-archive-changed"
  filter = "protoPayload.methodName=(\"DestroyCryptoKeyVersion\" OR \"UpdateCryptoKeyVersion\" OR \"storage.setIamPermissions\" OR \"storage.buckets.update\" OR \"SetIamPolicy\")"
  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }
}

resource "google_monitoring_alert_policy" "rare" {
  display_name          = "A key, or somebody's rights, were changed"
  combiner              = "OR"
  severity              = "WARNING"
  notification_channels = [google_monitoring_notification_channel.team.id]

  conditions {
    display_name = "changed"
    condition_threshold {
      filter          = "resource.type = \"global\" AND metric.type = \"logging.googleapis.com/user/${google_logging_metric.rare.name}\""
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"
      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_DELTA"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "deploy/runbook.md#keys-at-rest"
  }
}
