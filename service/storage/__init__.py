"""Where uploaded documents are kept: signing uploads, and the local store of development."""
