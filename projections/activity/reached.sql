-- How far activity has come. A statement of its own: with the figure in hand PostgreSQL plans a
-- timeline by what is left of the log, instead of guessing a third of it.
select coalesce(max(position), 0) as position from ledger.subscriptions where name = 'activity'
