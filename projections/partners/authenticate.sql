-- What authentication decides on, a row a request in the order asked: the partner, and the key
-- if it is that partner's. One read, however many requests come at once.
select
    p.status, p.name, p.return_link, p.suppress_email, p.sandbox_epoch,
    k.mode, k.secret_hash, k.revoked_at, k.revoked_later
from unnest($1::text[], $2::text[]) with ordinality as asked (partner_id, key_id, nr)
left join ledger.partners as p on p.partner_id = asked.partner_id
left join ledger.api_keys as k
    on k.partner_id = asked.partner_id and k.key_id = asked.key_id
order by asked.nr
