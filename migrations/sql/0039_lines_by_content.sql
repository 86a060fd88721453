-- Each line of a checkpoint once. Lines are longer than what an index can hold.
create unique index concurrently if not exists checkpoint_signatures_by_line
on ledger.checkpoint_signatures (origin, size, name, key_id, sha256(signature));
