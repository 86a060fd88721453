-- Whose a table is, and its storage options, which LIKE does not copy; no row: no such table.
select pg_get_userbyid(relowner) as owner, array_to_string(reloptions, ', ') as options
from pg_class
where oid = to_regclass($1)
