-- When somebody last signed out everywhere, or was signed out: marks that browsers have of them from
-- before are worth nothing. Forgotten when no such mark can be valid any more.
create table ledger.sign_outs (
    person_id text collate "C" primary key,
    at timestamptz not null
);
grant select, insert, update, delete on ledger.sign_outs to claim_ledger_of;
