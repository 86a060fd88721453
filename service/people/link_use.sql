-- Uses a link up, once: whoever comes second gets no row.
update ledger.sign_in_links set used_at = now()
where token_hash = $1 and used_at is null and expires_at > now()
returning link_id
