-- A partner's settings as they are from now on.
update ledger.partners as p
set return_link = changed.return_link, suppress_email = changed.suppress_email
from unnest($1::text[], $2::boolean[], $3::boolean[])
    as changed (partner_id, return_link, suppress_email)
where p.partner_id = changed.partner_id
