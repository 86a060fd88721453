-- Is there such a table?
select to_regclass($1) is not null as found
