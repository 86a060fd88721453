-- First messages that are still to be handed over to processing: references to their events. A row
-- goes when its hand-over is done. The table stays small and churns: vacuum it early.
create table ledger.hand_overs (
    position bigint primary key,
    stream_id uuid not null,
    noted_at timestamptz not null,
    attempts int not null default 0,
    next_attempt_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, fillfactor = 70);
create index hand_overs_due on ledger.hand_overs (next_attempt_at);
create index hand_overs_by_stream on ledger.hand_overs (stream_id, position);

grant select, insert, update, delete on ledger.hand_overs to claim_ledger_of;
