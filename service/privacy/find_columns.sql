-- Every table of the ledger's read models, mail and operation with its columns that hold text or bytes,
-- also of read models that are being rebuilt or kept for a way back. The log itself is opened event
-- by event.
select
    c.table_schema, c.table_name, array_agg(c.column_name::text order by c.ordinal_position) as columns,
    coalesce(
        (
            select array_agg(a.attname::text order by a.attnum)
            from pg_index as i
            join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
            where
                i.indisprimary
                and i.indrelid = format('%I.%I', c.table_schema, c.table_name)::regclass
        ),
        '{}'
    ) as key
from information_schema.columns as c
join information_schema.tables as t using (table_schema, table_name)
where
    c.table_schema = any($1::text[])
    and t.table_type = 'BASE TABLE'
    and c.data_type in ('text', 'character varying', 'json', 'jsonb', 'bytea', 'ARRAY')
    and c.table_name <> all($2::text[])
group by c.table_schema, c.table_name
order by c.table_schema, c.table_name
