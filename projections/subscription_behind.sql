-- Has the log grown past this subscriber, or been cut? Takes no lock and draws no transaction id.
select 1 from ledger.head as h
where h.size <> coalesce((select position from ledger.subscriptions where name = $1), -1)
