-- What a key's hash covers: version 1 its secret alone, version 2 its id, partner and mode as well, so
-- that a hash is of no use in another row. Keys that were issued before are of version 1, and work.
alter table ledger.api_keys add column hash_version smallint not null default 1;
