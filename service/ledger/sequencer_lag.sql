-- How many committed events wait for their number, and the oldest's state (its time is in there).
select
    (select count(*) from ledger.pending) as waiting,
    (
        select e.state from ledger.pending as p
        join ledger.events as e using (append_id)
        order by p.append_id limit 1
    ) as oldest,
    (select size from ledger.head where id = 1) as size
