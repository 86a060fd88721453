-- Is there anything to number? Takes no lock and draws no transaction id.
select exists(select from ledger.pending)
