-- Has a claim of this partner's a document? Linked ones stay, so the log need not be read.
select
    exists (
        select from ledger.claim_list as c
        join ledger.claim_documents as d using (claim_id)
        where c.partner_id = $1
    ) as found
