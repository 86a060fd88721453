"""The local store: stands in for Google Cloud Storage in development, and is as strict."""
