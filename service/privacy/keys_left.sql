-- Which of these data keys exist, and how long the streams of the same ids are. Nothing is unwrapped.
select
    k.key_id,
    (select max(originator_version) from ledger.events where originator_id = k.key_id) as version
from ledger.data_keys as k
where k.key_id = any($1::uuid[])
order by k.key_id
