#!/usr/bin/env bash
# HAProxy's check of a node: whether the ledger that the proxy is named after is entered there.
# HAProxy calls it with the proxy's address and port, and the node's. Beside it is `pgpass`, of HAProxy's
# user and mode 0600, with the ledgers' passwords.
set -u
export PGPASSFILE=${0%/*}/pgpass PGCONNECT_TIMEOUT=3
login=claim_ledger_$HAPROXY_PROXY_NAME
answer=$(psql -XAt -h "$3" -p "$4" -U "$login" -d claim_ledger -c 'show default_transaction_read_only')
[ "$answer" = off ]
