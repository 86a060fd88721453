-- Does an established business have this e-mail address or this company number?
select exists(
    select from ledger.entities where established and email_hash = $1::bytea
    union all
    select from ledger.entities where established and company_number_hash = $2::bytea
) as taken
