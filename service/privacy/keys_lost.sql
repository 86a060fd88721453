-- Which of these data keys are gone although no stream says that their subject was erased.
select asked.key_id
from unnest($1::uuid[]) as asked (key_id)
where
    not exists(select from ledger.data_keys as k where k.key_id = asked.key_id)
    and not exists(
        select from ledger.events as e
        where e.originator_id = asked.key_id and e.topic = 'PersonalDataErased'
    )
