-- Which epoch a partner's sandbox is in, and since when; null: since the partner was approved.
select sandbox_epoch, sandbox_reset_at from ledger.partners where partner_id = $1
