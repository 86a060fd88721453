#!/bin/sh
# Starts PostgreSQL as the official image does: a data directory that is new is made, and its scripts
# are run while the server listens on its socket alone. Anything else is run as it is.
set -eu
[ "${1:-}" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres "$PGDATA" /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    mkdir -p "$PGDATA"
    user=${POSTGRES_USER:-postgres}
    password=${POSTGRES_PASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}
    printf '%s' "$password" > /tmp/password
    # Its arguments are several words.
    # shellcheck disable=SC2086
    initdb -U "$user" --pwfile=/tmp/password --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 \
        ${POSTGRES_INITDB_ARGS:-} > /dev/null
    rm /tmp/password
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
    pg_ctl -D "$PGDATA" -o '-c listen_addresses=' -w start > /dev/null
    database=${POSTGRES_DB:-$user}
    [ "$database" = postgres ] || createdb -U "$user" "$database"
    for script in /docker-entrypoint-initdb.d/*.sh; do [ ! -e "$script" ] || . "$script"; done
    pg_ctl -D "$PGDATA" -m fast -w stop > /dev/null
fi
exec "$@"
