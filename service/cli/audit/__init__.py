"""`claim-ledger audit`: evidence, for auditors and for whoever has to answer them."""
