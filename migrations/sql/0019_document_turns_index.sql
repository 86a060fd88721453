-- Which partners have documents that wait, and the oldest of each.
create index concurrently if not exists document_checks_by_partner
on ledger.document_checks (partner_id, next_attempt_at);
