-- The columns of a table's primary key, in order.
select a.attname as name
from pg_index as x
cross join unnest(x.indkey::int[]) with ordinality as k (attnum, nr)
join pg_attribute as a on a.attrelid = x.indrelid and a.attnum = k.attnum
where x.indrelid = to_regclass($1) and x.indisprimary
order by k.nr
