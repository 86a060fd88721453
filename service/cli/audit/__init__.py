"""`claim-ledger audit`: evidence for auditors, and for the people who deal with them."""
