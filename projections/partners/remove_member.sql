-- People were removed from partners' teams.
update ledger.members as m set removed_at = one.at
from unnest($1::text[], $2::timestamptz[]) as one (member_id, at)
where m.member_id = one.member_id
