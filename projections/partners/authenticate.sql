-- What authentication decides on: the partner, and the key if it is that partner's. One read.
select
    p.status, p.name, p.return_link, p.suppress_email, p.sandbox_epoch,
    k.mode, k.secret_hash, k.revoked_at
from ledger.partners as p
left join ledger.api_keys as k on k.partner_id = p.partner_id and k.key_id = $2
where p.partner_id = $1
