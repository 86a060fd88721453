-- What became of these data keys: do they exist, and does a stream say that the subject was erased?
select
    asked.key_id,
    exists(select from ledger.data_keys as k where k.key_id = asked.key_id) as is_left,
    exists(
        select from ledger.events as e
        where e.originator_id = asked.key_id and e.topic = 'PersonalDataErased'
    ) as is_erased
from unnest($1::uuid[]) as asked (key_id)
