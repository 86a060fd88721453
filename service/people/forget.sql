-- Removes what is kept of an address that was erased: sessions end, links lead nowhere.
with links as (
    delete from ledger.sign_in_links where address_hash = $1
)
delete from ledger.sessions where address_hash = $1
