"""Makes chunks: claims a portion, computes, stages, validates, publishes, keeps leases, retries. Knows no Dagster."""
