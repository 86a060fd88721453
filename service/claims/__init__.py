"""Claims: creating, replaying, moving; the hand-over of their first message."""
