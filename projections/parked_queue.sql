-- The streams that a read model has put aside, that of the oldest event first; or, of a position.
select stream_id from ledger.parked
where read_model = $1 and (
    $2::bigint is null
    or stream_id = (select stream_id from ledger.parked where read_model = $1 and position = $2)
)
group by stream_id
order by min(position)
