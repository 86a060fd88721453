-- Whoever has a ledger's login writes these rows, and other processes read them: those that verify, sign
-- and number, of all ledgers. One of a few megabytes on disk was hundreds of them in each. None has more
-- bytes than the service ever writes: a tree is at most 64 hashes. Not validated: what is there is not
-- read where it is longer.
alter table ledger.checkpoints add constraint checkpoints_bounded check (
    octet_length(origin) <= 2048 and octet_length(note) <= 4096 and octet_length(tree) <= 2048
) not valid;
alter table ledger.checkpoint_signatures add constraint checkpoint_signatures_bounded check (
    octet_length(origin) <= 2048
) not valid;
alter table ledger.witness_refusals add constraint witness_refusals_bounded check (
    octet_length(origin) <= 2048
) not valid;
alter table ledger.head add constraint head_bounded check (
    octet_length(tree) <= 2048 and octet_length(part) <= 2048
) not valid;
alter table ledger.log_verification add constraint log_verification_bounded check (
    octet_length(tree) <= 2048 and octet_length(fault) <= 4096 and octet_length(mac) <= 64
) not valid;
alter table ledger.log_findings add constraint log_findings_bounded check (
    octet_length(fault) <= 4096 and octet_length(mac) <= 64
) not valid;
alter table ledger.data_keys add constraint data_keys_bounded check (
    octet_length(wrapped) <= 255 and octet_length(master_key_id) <= 64
) not valid;
