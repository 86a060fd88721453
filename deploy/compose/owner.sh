#!/bin/sh
# Makes the owner of the tables and its database, when the data directory is new.
set -eu
psql --username "${POSTGRES_USER:-postgres}" --set ON_ERROR_STOP=1 \
    --set password="$(cat /run/secrets/owner_password)" <<'SQL'
create role claim_ledger login createrole password :'password';
create database claim_ledger owner claim_ledger encoding 'UTF8' template template0;
SQL
