"""Object storage: signing uploads, reading a bucket under deadlines, checking its set-up."""
