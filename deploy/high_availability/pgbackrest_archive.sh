#!/usr/bin/env bash
# PostgreSQL's archive_command, `pgbackrest_archive.sh %p %f`: pgBackRest, but for what nobody needs.
#
# Where a primary was lost, its last file and its successor's copy of it end differently, and pgBackRest
# refuses the second of them (45: the repository has this name with another content). PostgreSQL would
# ask again for ever, and archive nothing that is newer. Recovery reads a file of the newest timeline that
# has it, so the end of an older one is not needed: it is let go, if a later timeline is here.
# Two histories of one timeline are another matter: somebody has to look at them.
set -u
pgbackrest --stanza=claim-ledger archive-push "$1"
code=$?
newest=$(find "$(dirname "$1")" -maxdepth 1 -name '*.history' -printf '%f\n' | sort | tail -n 1)
if [[ $code == 45 && $2 != *.history && -n $newest && ${2:0:8} < ${newest%.history} ]]; then
    echo "$2 is in the repository already, with another end: the later timeline ${newest%.history} goes on" >&2
    exit 0
fi
exit "$code"
