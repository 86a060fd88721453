-- Which version of its code made the rows of each read model that was ever rebuilt.
select name, version, rebuilt_at, previous_version from ledger.read_models
