#!/usr/bin/env bash
# Makes a machine's certificate, and once the authority that vouches for all of them:
#   certificates.sh DIRECTORY MACHINE NAME...
# DIRECTORY is on a machine of its own: `authority.key` in it can make any of these certificates.
# `authority.crt`, MACHINE.crt and MACHINE.key go to /etc/claim-ledger on the machine. NAMEs are host names
# and addresses: the machine's own, by which others reach it, and that of what runs on it, as the URLs have it
# (deploy/runbook.md, "Certificates between machines"). A later run makes another certificate and key; one that
# fails changes neither.
# `just drill` runs this file.
set -euo pipefail
umask 077
directory=$1 machine=$2
shift 2
authority=$directory/authority
[ "$machine" != authority ] || { echo "MACHINE: authority is the name of the authority's own files" >&2; exit 2; }

configuration() {
    printf '[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = extensions\n[name]\nCN = %s\n' "$1"
    printf '[extensions]\nsubjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n%s\n' "$2"
}
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

mkdir -p "$directory"
if [ ! -e "$authority.crt" ]; then
    [ -e "$authority.key" ] || new_key "$authority.key"
    configuration "machines of claim-ledger" $'basicConstraints = critical,CA:true,pathlen:0
keyUsage = critical,keyCertSign,cRLSign' |
        openssl req -x509 -new -config /dev/stdin -key "$authority.key" -days 3650 -out "$authority.crt"
fi

names=
for name in "$@"; do
    [[ $name == *:* || $name =~ ^[0-9.]+$ ]] && kind=IP || kind=DNS
    names+=${names:+,}$kind:$name
done
new_key "$directory/new.key"
# Machines show theirs to each other as clients, too.
configuration "$machine" "basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = $names" |
    openssl req -x509 -new -config /dev/stdin -key "$directory/new.key" -days 365 \
        -CA "$authority.crt" -CAkey "$authority.key" -out "$directory/new.crt"
for ending in key crt; do mv "$directory/new.$ending" "$directory/$machine.$ending"; done
