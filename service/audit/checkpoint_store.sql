-- A checkpoint that follows the one of size $3, unless another came first, or one was made after $6.
insert into ledger.checkpoints (origin, size, note, tree, made_at)
select $1, $2, $4, $5, $7
where
    $3 = (select coalesce(max(size), 0) from ledger.checkpoints where origin = $1)
    and not exists (select from ledger.checkpoints where origin = $1 and made_at > $6)
on conflict do nothing
returning size
