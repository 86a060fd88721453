-- A table's indexes as they would be made, the primary key first; `constraint_def` is that of the
-- constraint that an index serves, if it serves one.
select
    quote_ident(i.relname) as name,
    x.indisprimary as is_primary,
    pg_get_indexdef(i.oid) as index_def,
    pg_get_constraintdef(k.oid) as constraint_def
from pg_index as x
join pg_class as i on i.oid = x.indexrelid
left join pg_constraint as k on k.conindid = i.oid and k.contype in ('p', 'u', 'x')
where x.indrelid = to_regclass($1)
order by not x.indisprimary, i.relname
