-- What a row is of is no login's to change. A finding under another name silenced the alerts on it, and a
-- subscriber whose place had another name began anew.
revoke update on ledger.log_findings, ledger.subscriptions from claim_ledger_of;
grant update (position, seen, faults, fault_position, fault, mac) on ledger.log_findings
to claim_ledger_of;
grant update (position, leaf_hash) on ledger.subscriptions to claim_ledger_of;

-- A subscriber moves on, and never back: it would have its effects again, hand-overs of all messages
-- among them. After a restore the owner decides where it continues.
create function ledger.refuse_return() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    if pg_has_role(current_user, (select relowner from pg_class where oid = tg_relid), 'usage') then
        return new;
    end if;
    raise exception 'UPDATE on %.% is refused: a subscriber only moves on',
        tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
end
$$;
create trigger moves_on before update on ledger.subscriptions
for each row when (new.position <= old.position) execute function ledger.refuse_return();
