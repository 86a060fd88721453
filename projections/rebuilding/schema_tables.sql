-- The tables of a schema, as a statement names them.
select oid::regclass::text as name
from pg_class
where relnamespace = to_regnamespace($1) and relkind = 'r'
