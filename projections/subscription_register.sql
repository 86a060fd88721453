-- A new subscriber starts at the log's beginning. Answers a row if it was new.
insert into ledger.subscriptions (name, position) values ($1, 0)
on conflict do nothing
returning position
