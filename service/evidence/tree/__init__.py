"""The log's tree under a signed root, read by tiles: proofs cost what they prove, not the log."""
