-- name: landing
-- Does a person belong to the service's team, and to any partner's? Of one that is not approved only
-- whoever applied does, who became a member at the same moment: others were added by somebody else.
select
    exists(
        select from ledger.staff where address_hash = $1 and removed_at is null
    ) as is_staff,
    exists(
        select from ledger.members as m
        join ledger.partners as p using (partner_id)
        where
            m.address_hash = $1 and m.removed_at is null
            and (p.status = 'approved' or m.added_at = p.applied_at)
    ) as is_member
