-- Partners' settings as they are from now on. Of several changes of one's the last counts.
update ledger.partners as p
set return_link = changed.return_link, suppress_email = changed.suppress_email
from (
    select distinct on (partner_id) partner_id, return_link, suppress_email
    from unnest($1::text[], $2::boolean[], $3::boolean[])
        with ordinality as one (partner_id, return_link, suppress_email, nr)
    order by partner_id, nr desc
) as changed
where p.partner_id = changed.partner_id
