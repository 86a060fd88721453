-- About how many events there are to open: ids are drawn in order, with gaps where a command failed.
select coalesce(max(append_id), 0) as size from ledger.events
