-- `audit verify` compares triggers and functions with those of its own release, if they are of it.
grant select on public.alembic_version to claim_ledger_of;
