#!/usr/bin/env bash
# Moves a ledger to another node while it is used: move.sh LEDGER HOST PORT, where libpq's variables lead
# to the coordinator as a superuser. Writes go on while rows are copied. They end for the switch alone,
# some seconds: what Citus still lets through at that moment can be written to the tables that were left.
set -euo pipefail
ledger=$1 host=$2 port=$3 here=$(dirname "$0")
sql() { psql --no-psqlrc --quiet --no-align --tuples-only -v ON_ERROR_STOP=1 -v ledger="$ledger" "$@"; }

# Whatever happens, the ledger is entered in the end by the node that has its tables.
trap 'sql -f "$here/enter.sql"' EXIT

# The nodes copy to each other, and an entry node takes the others for inactive.
sql -c "select run_command_on_workers(format('update pg_dist_node set isactive = true where nodeid = any(%L)',
    array_agg(nodeid))) from pg_dist_node where isactive"

# A shared lock on the shards' places, which the switch needs for itself.
coproc HOLD { sql; }
cat >&"${HOLD[1]}" <<SQL
begin;
select from lock_shard_metadata(5, (select array_agg(shardid) from pg_dist_shard
    where logicalrelid in (select oid from pg_class where relnamespace = '$ledger'::regnamespace)));
select pg_backend_pid();
SQL
read -r holder <&"${HOLD[0]}"
commit=${HOLD[1]}

sql -c 'set citus.enable_unsafe_triggers = on' \
    -c "select citus_schema_move('$ledger', '$host', $port, 'force_logical')" &
move=$!
waits="select exists(select from pg_locks where not granted and $holder = any(pg_blocking_pids(pid)))"
until [ "$(sql -c "$waits")" = t ]; do
    kill -0 "$move" 2>/dev/null || { wait "$move"; exit 1; }
    sleep 0.2
done

# Everything is there but what is written now.
sql -f "$here/fence.sql"
echo 'commit;' >&"$commit"
wait "$move"
