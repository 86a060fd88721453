-- What the developer console finds among a partner's claims and links: by stage, by the partner's own
-- reference, and by its user.
create index concurrently if not exists claim_list_of_stage
on ledger.claim_list (partner_id, stage, append_id);
create index concurrently if not exists claim_list_by_reference
on ledger.claim_list (partner_id, partner_claim_id, append_id);
create index concurrently if not exists connect_links_of_user
on ledger.connect_links (partner_id, partner_user_id, issued_at, link_id)
where partner_user_id is not null;
