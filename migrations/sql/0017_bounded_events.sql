-- Whoever has the ledger's role may write events that are set aside. One of a gigabyte would be hashed
-- and copied for longer than a batch may take, and every process that folds its stream would hold it.
-- A request has 1 MiB. Not validated: what is there is not read.
alter table ledger.events add constraint events_bounded check (
    octet_length(state) <= 16 * 1024 * 1024 and octet_length(topic) <= 200 and octet_length(mac) <= 64
) not valid;
