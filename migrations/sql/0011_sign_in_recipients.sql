-- The mailbox of an address, by which links are limited: `who+1@` and `who@` have one. Null in links
-- of before, which end within a quarter of an hour and are counted by their address.
alter table ledger.sign_in_links add column recipient_hash bytea;
create index sign_in_links_of_recipient on ledger.sign_in_links (recipient_hash, asked_at);
