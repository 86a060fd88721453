-- How many partners are in each state.
select status, count(*) as partners from ledger.partners group by status
