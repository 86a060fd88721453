-- The functions of revisions 0003 and 0015, which make what they made. Those were declared immutable,
-- which what they are made of is not (`convert_to` and `uuid || text` are stable), so PostgreSQL called
-- them for each event, with an executor of its own each time. Declared as what they are, their text
-- becomes a part of the statement that asks for it.
create or replace function ledger.leaf_hash(
    log_position bigint, append_id bigint, originator_id uuid, originator_version bigint,
    topic text, state bytea
) returns bytea language sql stable return sha256('\x00'::bytea || convert_to(
    'claim-ledger event v1' || chr(10) || log_position || chr(10) || append_id || chr(10)
    || originator_id || chr(10) || originator_version || chr(10) || topic || chr(10)
    || encode(sha256(state), 'hex') || chr(10), 'UTF8'));

create or replace function ledger.event_digest(
    originator_id uuid, originator_version bigint, topic text, state bytea
) returns bytea language sql stable return sha256(convert_to(
    'claim-ledger event mac v1' || chr(10) || originator_id || chr(10) || originator_version || chr(10)
    || topic || chr(10) || encode(sha256(state), 'hex') || chr(10), 'UTF8'));
