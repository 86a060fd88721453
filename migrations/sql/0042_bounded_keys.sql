-- The same of the service's own keys, wrapped.
alter table ledger.event_keys add constraint event_keys_bounded check (
    octet_length(wrapped) <= 255 and octet_length(master_key_id) <= 64
) not valid;
alter table ledger.service_keys add constraint service_keys_bounded check (
    octet_length(name) <= 64 and octet_length(wrapped) <= 255 and octet_length(master_key_id) <= 64
) not valid;
