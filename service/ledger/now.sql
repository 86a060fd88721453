-- The database's clock: links expire by it, whichever machine asks.
select clock_timestamp()
