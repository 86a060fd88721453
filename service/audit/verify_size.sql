-- About how many events there are to read.
select size from ledger.head
