-- What the developer console lists of a partner, newest first, over all its entities.
create index claim_list_of_partner on ledger.claim_list (partner_id, append_id);
create index onboardings_of_partner
on ledger.onboardings (partner_id, started_at, onboarding_id);
create index connect_links_of_partner on ledger.connect_links (partner_id, issued_at, link_id);

-- By which a partner knows a link again; null for links from before this column, until a rebuild.
alter table ledger.connect_links add column partner_user_id text collate "C";
