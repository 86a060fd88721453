-- Sessions whose address an older master key wraps. One that is over is opened by nobody any more.
select session_id as name, wrapped, master_key_id
from ledger.sessions
where master_key_id <> $1 and session_id > $2 and expires_at > now()
order by session_id
limit $3
for update skip locked
