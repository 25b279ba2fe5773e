#!/bin/sh
# Makes the certificates of this folder anew, with OpenSSL, in the current folder.
set -eu
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
key() { # ALGORITHM OPTION FILE
    openssl genpkey -algorithm "$1" -pkeyopt "$2" -out "$3" 2>/dev/null
}
sign() { # NAME COMMON-NAME KEY FROM TO EXTENSIONS OPTIONS...
    name=$1 common=$2 private=$3 from=$4 to=$5 extensions=$6
    shift 6
    openssl req -new -key "$private" -subj "/O=Allosaur tests/CN=$common" -out "$work/csr"
    printf "$extensions" > "$work/extensions"
    : > "$work/index"
    printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\nO=optional\nCN=supplied\n' \
        "$work/index" "$work" > "$work/config"
    openssl ca -batch -notext -config "$work/config" "$@" -extfile "$work/extensions" \
        -startdate "$from" -enddate "$to" -in "$work/csr" -out "$name.pem" 2>/dev/null
}
authority() { # NAME
    key EC ec_paramgen_curve:P-256 "$work/$1.key"
    sign "$1" "$1" "$work/$1.key" 20200101000000Z 21200101000000Z \
        'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n' \
        -selfsign -keyfile "$work/$1.key"
}
leaf() { # NAME AUTHORITY USAGE NAME-IN-IT KEY FROM TO
    sign "$1" "$4" "$5" "$6" "$7" \
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=$3\nsubjectAltName=DNS:$4\n" \
        -cert "$2.pem" -keyfile "$work/$2.key"
}
authority ca
authority other-ca
key EC ec_paramgen_curve:P-256 server.key
key RSA rsa_keygen_bits:2048 server-rsa.key
key EC ec_paramgen_curve:P-256 client.key
key EC ec_paramgen_curve:P-256 stranger.key
leaf server ca serverAuth radius.example.org server.key 20250101000000Z 21200101000000Z
leaf server-rsa ca serverAuth radius.example.org server-rsa.key 20250101000000Z 21200101000000Z
leaf expired ca serverAuth radius.example.org server.key 20200101000000Z 20210101000000Z
leaf client ca clientAuth alice client.key 20250101000000Z 21200101000000Z
leaf stranger other-ca clientAuth mallory stranger.key 20250101000000Z 21200101000000Z
