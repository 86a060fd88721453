-- name: landing
-- Does a person belong to the service's team, and to any partner's?
select
    exists(
        select from ledger.staff where address_hash = $1 and removed_at is null
    ) as is_staff,
    exists(
        select from ledger.members where address_hash = $1 and removed_at is null
    ) as is_member
