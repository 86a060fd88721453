"""What partners are told of: an event's form (CloudEvents 1.0), and cursors of a list of them."""
