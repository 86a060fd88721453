-- Who may do what with a table, beside its owner.
select
    a.privilege_type,
    a.is_grantable,
    case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
from pg_class as c, aclexplode(c.relacl) as a
where c.oid = to_regclass($1) and a.grantee <> c.relowner
