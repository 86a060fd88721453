variable "project" {
  description = "The project that everything is in."
  type        = string
}

variable "region" {
  description = "Where data is kept and processed."
  type        = string
  default     = "europe-west2"
}

variable "archive_retention_days" {
  description = "How long nobody can delete a checkpoint. The lock is for good: it can only be made longer."
  type        = number
  default     = 3650
}

variable "public_tiles" {
  description = "Whether everybody may read the logs as tiles; otherwise whoever you grant it to."
  type        = bool
  default     = false
}

variable "browser_origins" {
  description = "Origins whose pages may upload documents from the browser; none: servers alone."
  type        = list(string)
  default     = []
}

variable "alert_email" {
  description = "Where alerts go."
  type        = string
}

variable "public_host" {
  description = "The host at which the service is reached."
  type        = string
}

variable "operator_ranges" {
  description = "Networks from which the cluster's control plane is reached."
  type        = list(object({ name = string, cidr = string }))
  default     = []
}
