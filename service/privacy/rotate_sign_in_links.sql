-- Sign-in links whose address an older master key wraps. One that is over is opened by nobody any more.
select link_id as name, wrapped, master_key_id
from ledger.sign_in_links
where master_key_id <> $1 and link_id > $2 and expires_at > now()
order by link_id
limit $3
for update skip locked
