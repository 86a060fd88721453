-- Who belongs to a partner's team, in the order in which they were added.
select member_id, added_at
from ledger.members
where partner_id = $1 and removed_at is null
order by added_at, member_id
