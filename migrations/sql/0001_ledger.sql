-- One ledger's own tables. Applied once for each of the schemas accounts, live and test:
-- `ledger.` stands for the schema's name (decision 5).

create schema ledger;

-- The log itself. The primary key is what makes writes idempotent for ever (decision 1): a stream's
-- id is derived from its natural key, and each version of it can be inserted once.
create table ledger.events (
    append_id bigint generated always as identity (cache 1) unique,
    originator_id uuid not null,
    originator_version bigint not null check (originator_version > 0),
    topic text collate "C" not null,
    state bytea not null,
    primary key (originator_id, originator_version)
);

-- Committed and not yet numbered. Queue and sequencer keep appends from waiting for each other
-- (decision 2). The table stays small and churns: vacuum it early.
create table ledger.pending (append_id bigint primary key)
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, fillfactor = 70);

create table ledger.log (
    position bigint primary key check (position > 0),
    append_id bigint not null unique references ledger.events (append_id)
);

create table ledger.head (id int primary key check (id = 1), size bigint not null);
insert into ledger.head values (1, 0);

-- Ids that partners see, unique whatever read models exist (decision 1).
create table ledger.public_ids (public_id text collate "C" primary key);

-- A data key per subject, wrapped by a master key, apart from the log (decision 8).
create table ledger.data_keys (
    key_id uuid primary key,
    wrapped bytea not null,
    master_key_id text collate "C" not null
);

-- How far each subscriber has come; moves in the transaction of the subscriber's writes.
create table ledger.subscriptions (name text collate "C" primary key, position bigint not null);

-- What the stock recorder of the `eventsourcing` library reads.
create view ledger.stored_events as
select e.originator_id, e.originator_version, e.topic, e.state, l.position as notification_id
from ledger.events as e
left join ledger.log as l using (append_id);

create function ledger.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% on %.% is refused: the ledger is append-only',
        tg_op, tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
end
$$;

-- Statement triggers, so that a change that would match no row is refused too; ALWAYS, so that
-- session_replication_role does not switch them off.
create trigger append_only before update or delete or truncate on ledger.events
for each statement execute function ledger.refuse_change();
alter table ledger.events enable always trigger append_only;
create trigger append_only before update or delete or truncate on ledger.log
for each statement execute function ledger.refuse_change();
alter table ledger.log enable always trigger append_only;
create trigger append_only before update or delete or truncate on ledger.public_ids
for each statement execute function ledger.refuse_change();
alter table ledger.public_ids enable always trigger append_only;

-- The application's role for this ledger. Roles belong to the cluster: it may exist already.
do $$
begin
    create role claim_ledger_of nologin;
exception when duplicate_object or unique_violation then null;
end
$$;
do $$
begin
    if not (select rolsuper from pg_roles where rolname = current_user) then
        execute format('grant claim_ledger_of to %I', current_user);
    end if;
end
$$;
grant usage on schema ledger to claim_ledger_of;
grant select, insert on ledger.events, ledger.log, ledger.public_ids to claim_ledger_of;
grant select, insert, delete on ledger.pending to claim_ledger_of;
grant select, update on ledger.head to claim_ledger_of;
grant select, insert, update, delete on ledger.data_keys, ledger.subscriptions to claim_ledger_of;
grant select on ledger.stored_events to claim_ledger_of;
