"""Activity: where in the log something happened to a subject, and the timelines made from it."""
