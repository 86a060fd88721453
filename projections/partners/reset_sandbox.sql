-- Sandboxes began anew. Of several resets of one the last counts.
update ledger.partners as p set sandbox_epoch = anew.epoch, sandbox_reset_at = anew.at
from (
    select distinct on (partner_id) partner_id, epoch, at
    from unnest($1::text[], $2::int[], $3::timestamptz[])
        with ordinality as one (partner_id, epoch, at, nr)
    order by partner_id, nr desc
) as anew
where p.partner_id = anew.partner_id
