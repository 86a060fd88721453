-- Who may look into a schema, beside its owner.
select case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
from pg_namespace as n, aclexplode(n.nspacl) as a
where n.nspname = $1 and a.privilege_type = 'USAGE' and a.grantee <> n.nspowner
