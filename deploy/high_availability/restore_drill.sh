#!/usr/bin/env bash
# The restore drill of the runbook, from pgBackRest: the newest backup and all archived log, into an
# empty directory, compared with what production has published. On another machine than production's.
# Arguments are passed on to `pgbackrest restore`, such as --type=time '--target=2026-03-01 10:15+00'.
#
#   DRILL_DIRECTORY   empty, PostgreSQL's own
#   DRILL_PORT        of CLAIM_LEDGER_DATABASE_URL and the ledgers' URLs, on 127.0.0.1
#   DRILL_PUBLISHED   a copy of the archive
#   DRILL_PUBLIC_KEY  what `claim-ledger audit public-key` shows in production
#   PG_BIN            of PostgreSQL's programs; PGBACKREST_…: where the backups are
#   CLAIM_LEDGER_…    the settings of a drill, as the runbook has them
set -euo pipefail

: "${DRILL_DIRECTORY:?}" "${DRILL_PORT:?}" "${DRILL_PUBLISHED:?}" "${DRILL_PUBLIC_KEY:?}" "${PG_BIN:?}"
for name in CLAIM_LEDGER_CHECKPOINT_KEYS CLAIM_LEDGER_CHECKPOINT_KEYS_FILE CLAIM_LEDGER_ARCHIVE_URL; do
    # Either would let a drill publish that production's events are lost.
    [ -z "${!name:-}" ] || { echo "A drill has no $name: unset it." >&2; exit 2; }
done
[ -d "$DRILL_DIRECTORY" ] && [ -z "$(ls -A "$DRILL_DIRECTORY")" ] ||
    { echo "$DRILL_DIRECTORY is not an empty directory." >&2; exit 2; }

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --init-groups -- "$@"; else "$@"; fi
}
step() { echo "$SECONDS s: $*"; }
fetch() { "$PG_BIN/psql" --no-psqlrc -XAtc "$1" "$CLAIM_LEDGER_DATABASE_URL"; }

step "restoring"
as_postgres pgbackrest --stanza=claim-ledger --pg1-path="$DRILL_DIRECTORY" --archive-mode=off "$@" restore

step "recovering"
# Of the settings that came with the backup, those that lead to production's machines are set aside. So
# are its certificate, which is not here, and who is let in with one alone.
hba=$DRILL_DIRECTORY/drill_hba.conf
as_postgres tee "$hba" >/dev/null <<<$'local all all peer\nhost all all 127.0.0.1/32 scram-sha-256'
options="-p $DRILL_PORT -c listen_addresses=127.0.0.1 -c unix_socket_directories=$DRILL_DIRECTORY
    -c ssl=off -c hba_file=$hba -c ident_file=$DRILL_DIRECTORY/pg_ident.conf
    -c synchronous_standby_names= -c primary_conninfo= -c archive_mode=off"
stop() { as_postgres "$PG_BIN/pg_ctl" --pgdata "$DRILL_DIRECTORY" --mode immediate stop >/dev/null || true; }
trap stop EXIT
as_postgres "$PG_BIN/pg_ctl" --pgdata "$DRILL_DIRECTORY" --log "$DRILL_DIRECTORY/drill.log" \
    --options "${options//$'\n'/ }" --timeout 86400 --wait start >/dev/null
until [ "$(fetch 'select pg_is_in_recovery()' 2>/dev/null)" = f ]; do sleep 0.2; done

step "verifying"
claim-ledger migrate >/dev/null
claim-ledger audit verify --public-key "$DRILL_PUBLIC_KEY"
for ledger in accounts live test; do
    size=$(fetch "select size from $ledger.head")
    # The newest that was published of what the backup has: later ones cover later events.
    newest=$(find "$DRILL_PUBLISHED/checkpoints" -path "*/$ledger/*" -name '*.txt' |
        awk -F/ -v size="$size" '{ number = $NF; sub(/\.txt$/, "", number)
            if (number + 0 <= size + 0) print number "\t" $0 }' | sort | tail -n 1 | cut -f 2)
    [ -n "$newest" ] || { echo "Nothing of $ledger was published before the backup." >&2; exit 1; }
    step "$ledger has $size events; comparing with ${newest##*/}"
    claim-ledger audit verify --public-key "$DRILL_PUBLIC_KEY" --ledger "$ledger" --checkpoint "$newest"
done
export CLAIM_LEDGER_ARCHIVE_URL="file://$DRILL_PUBLISHED"
claim-ledger privacy reapply
claim-ledger projections verify
step "passed: delete $DRILL_DIRECTORY and $DRILL_PUBLISHED, they contain personal data"
