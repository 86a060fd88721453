#!/usr/bin/env bash
# Writes when certificates end, for the textfile collector of Prometheus's node exporter:
#   certificate_ends.sh FILE CERTIFICATE...
# Every day, on each machine that has one (deploy/runbook.md, "Certificates between machines"). What was written
# stays true where a later run fails.
set -euo pipefail
: "${2:?CERTIFICATE}"
file=$1
shift
trap 'rm -f "$file.$$"' EXIT
{
    echo "# HELP claim_ledger_certificate_ends_seconds When a certificate on this machine ends, in Unix time."
    echo "# TYPE claim_ledger_certificate_ends_seconds gauge"
    for certificate in "$@"; do
        ends=$(openssl x509 -enddate -noout -in "$certificate")
        seconds=$(date --date "${ends#notAfter=}" +%s)
        printf 'claim_ledger_certificate_ends_seconds{certificate="%s"} %s\n' "$certificate" "$seconds"
    done
} >"$file.$$"
chmod 644 "$file.$$" # the node exporter runs as a user of its own
mv --no-target-directory "$file.$$" "$file"
