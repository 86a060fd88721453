"""The rate limit: a moving window a partner, in Redis and in the process."""
