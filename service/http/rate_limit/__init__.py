"""Rate limits: moving windows, in Redis and in the process."""
