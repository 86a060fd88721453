-- The developer console: who belongs to a partner's team, and keys that end at a moment ahead.

create table ledger.members (
    member_id text collate "C" primary key,
    partner_id text collate "C" not null,
    address_hash bytea,
    added_at timestamptz not null,
    removed_at timestamptz
);
create index members_of_partner on ledger.members (partner_id) where removed_at is null;
create index members_by_address on ledger.members (address_hash, partner_id)
where removed_at is null;
grant select, insert, update, delete, truncate on ledger.members to claim_ledger_of;

-- True: the clock decides whether revoked_at has come. False: the key is revoked, whatever a clock
-- says, so that a revocation holds from the next request on though two machines' clocks differ.
alter table ledger.api_keys add column revoked_later boolean not null default false;
