-- What others have signed of a stored checkpoint, each a signature line of its note (C2SP signed-note):
-- cosignatures of witnesses, and tokens of time-stamping authorities. They come after the checkpoint,
-- or never; one of each key.
create table ledger.checkpoint_signatures (
    origin text collate "C" not null,
    size bigint not null,
    name text collate "C" not null check (octet_length(name) between 1 and 255),
    key_id bytea not null check (octet_length(key_id) = 4),
    signature bytea not null check (octet_length(signature) between 1 and 32768),
    made_at timestamptz not null,
    primary key (origin, size, name, key_id),
    foreign key (origin, size) references ledger.checkpoints
);
create trigger append_only before update or delete or truncate on ledger.checkpoint_signatures
for each statement execute function ledger.refuse_change();
alter table ledger.checkpoint_signatures enable always trigger append_only;
grant select, insert on ledger.checkpoint_signatures to claim_ledger_of;
