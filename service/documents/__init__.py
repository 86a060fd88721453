"""Documents: minting upload URLs, linking uploads to claims, finding what changed or was left."""
