-- Evidence and operation of a ledger: hashes of its events, signed checkpoints, read models that can
-- be rebuilt, streams that a projector could not apply.

-- The leaf of the Merkle tree (docs/ledger-format.md): RFC 6962's hash of a record of every column.
create function ledger.leaf_hash(
    log_position bigint, append_id bigint, originator_id uuid, originator_version bigint,
    topic text, state bytea
) returns bytea language sql immutable return sha256('\x00'::bytea || convert_to(
    'claim-ledger event v1' || chr(10) || log_position || chr(10) || append_id || chr(10)
    || originator_id || chr(10) || originator_version || chr(10) || topic || chr(10)
    || encode(sha256(state), 'hex') || chr(10), 'UTF8'));

alter table ledger.log add column leaf_hash bytea check (octet_length(leaf_hash) = 32);
-- Rewrites the log, which nobody can read or write meanwhile (deploy/runbook.md says how long).
do $$
begin
    if exists(select from ledger.log) then
        alter table ledger.log disable trigger append_only;
        update ledger.log as l set leaf_hash = ledger.leaf_hash(
            l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
        ) from ledger.events as e where e.append_id = l.append_id;
        alter table ledger.log enable always trigger append_only;
    end if;
end $$;
alter table ledger.log alter column leaf_hash set not null;

-- The tree's compact range: a hash for each complete subtree, largest first. Null where the log is
-- older than its tree: the sequencer makes it from the leaf hashes before its next batch, and keeps
-- the tree of the first `part_size` events meanwhile.
alter table ledger.head
add column tree bytea,
add column part_size bigint not null default 0,
add column part bytea not null default '';
update ledger.head set tree = '' where size = 0;
create trigger head_stays before delete or truncate on ledger.head
for each statement execute function ledger.refuse_change();
alter table ledger.head enable always trigger head_stays;

-- What was signed (C2SP tlog-checkpoint). Copies are published outside the database. `tree` is the
-- compact range that the root was made of: the next checkpoint costs what is new. It is believed
-- only where it makes the signed root, and without it the leaf hashes are read from the start.
create table ledger.checkpoints (
    origin text collate "C" not null,
    size bigint not null check (size >= 0),
    note text not null,
    tree bytea,
    made_at timestamptz not null default clock_timestamp(),
    primary key (origin, size)
);
create index checkpoints_by_age on ledger.checkpoints (made_at, size);
create trigger append_only before update or delete or truncate on ledger.checkpoints
for each statement execute function ledger.refuse_change();
alter table ledger.checkpoints enable always trigger append_only;

-- How checkpoints fare, for whichever process is asked for its metrics.
create table ledger.checkpoint_state (
    id int primary key check (id = 1),
    forked boolean not null default false,
    publication_failures bigint not null default 0
);
insert into ledger.checkpoint_state values (1);

-- Which code made a read model's rows, and what `projections rollback` goes back to.
create table ledger.read_models (
    name text collate "C" primary key,
    version int not null,
    rebuilt_at timestamptz,
    previous_version int,
    previous_rebuilt_at timestamptz,
    previous_position bigint
);

-- Which event a subscriber came to: a log that was cut, or restored from before, has another one
-- there or none. Null: it began before this column, or an operator has set its position.
alter table ledger.subscriptions add column leaf_hash bytea check (octet_length(leaf_hash) = 32);

-- Events that a catch-up projector could not apply, and what followed them in their streams.
create table ledger.parked (
    read_model text collate "C" not null,
    position bigint not null,
    stream_id uuid not null,
    error text not null,
    parked_at timestamptz not null,
    primary key (read_model, position)
);
create index parked_streams on ledger.parked (read_model, stream_id);

-- Where in the log something happened to a subject: the id of a claim, entity, link, partner, …, or
-- of a request.
create table ledger.activity (
    subject text collate "C" not null,
    position bigint not null,
    topic text collate "C" not null,
    at timestamptz not null,
    actor text not null,
    request_id text not null,
    primary key (subject, position)
);

grant select, insert on ledger.checkpoints to claim_ledger_of;
grant select, update on ledger.checkpoint_state to claim_ledger_of;
grant select, insert, update, delete on ledger.read_models, ledger.parked to claim_ledger_of;
grant select, insert, update, delete, truncate on ledger.activity to claim_ledger_of;

-- How long the oldest transaction of our log-ins has been open, in seconds; 0 where none is. As the
-- owner, because a ledger's role may not see when a session of the log-in role began. Sessions of
-- other people are seen only once the owner is granted pg_read_all_stats.
create function ledger.oldest_transaction_seconds() returns double precision
language sql security definer set search_path = pg_catalog as $$
    select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::double precision
    from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
    and pid <> pg_backend_pid()
$$;
revoke execute on function ledger.oldest_transaction_seconds() from public;
grant execute on function ledger.oldest_transaction_seconds() to claim_ledger_of;
