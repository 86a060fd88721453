-- Everybody who is staff now, in the order in which they were added.
select staff_id, stream_id, added_at from ledger.staff where removed_at is null order by added_at
