#!/usr/bin/env bash
# deb.sh [WHEEL [FOLDER]]: makes the Debian packages allosaur-server (the program, its unit) and allosaur (the command
# line and the Python package) of a wheel, the newest of dist/ unless one is named, into FOLDER (dist). It fetches
# nothing: Python packages that Debian 12 lacks are copied from .venv, see bundle.py.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
python="$ROOT/.venv/bin/python"
parts="$ROOT/scripts/deb"
wheel=${1:-$(find dist -maxdepth 1 -name 'allosaur-*.whl' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d' ' -f2)}
[ -n "$wheel" ] || fail 'there is no wheel in dist/' 'build one: make wheel'
out=${2:-dist}
for tool in dpkg-deb dpkg-shlibdeps strip gzip; do
    command -v "$tool" >/dev/null || fail "$tool is missing" 'sudo apt-get install dpkg-dev binutils'
done
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
"$python" -m zipfile -e "$wheel" "$work/wheel"
info=$(cd "$work/wheel" && echo allosaur-*.dist-info)
version=${info#allosaur-}
version=${version%.dist-info}
revision="$version-0allosaur1"
scripts="$work/wheel/allosaur-$version.data/scripts"
case $wheel in
    *x86_64*) arch=amd64 ;;
    *aarch64*) arch=arm64 ;;
    *) fail "$wheel is for a machine that this script does not know" ;;
esac
maintainer="${DEBFULLNAME:-The Allosaur authors} <${DEBEMAIL:-allosaur@packages.invalid}>"

# The parts of a package that each has: documents, control data; then the package.
pack() { # pack NAME ARCHITECTURE SECTION SYNOPSIS, with further fields and the description on the standard input
    local name=$1 tree="$work/$1" doc="$work/$1/usr/share/doc/$1"
    mkdir -p "$tree/DEBIAN" "$doc"
    cp "$parts/copyright" "$doc/copyright"
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
    printf 'allosaur (%s) unstable; urgency=medium\n\n  * Release %s; what is new is in changelog.gz.\n\n -- %s  %s\n' \
        "$revision" "$version" "$maintainer" "$(date -uRd "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.Debian.gz"
    find "$tree" -name '*.[18]' -path '*/man/*' -exec gzip -9n {} +
    {
        printf 'Package: %s\nVersion: %s\nSource: allosaur\nArchitecture: %s\nMaintainer: %s\nPriority: optional\n' \
            "$name" "$revision" "$2" "$maintainer"
        printf 'Section: %s\nInstalled-Size: %s\n' "$3" "$(du -sk --apparent-size "$tree" | cut -f1)"
        cat
    } >"$tree/DEBIAN/control"
    (cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    dpkg-deb --root-owner-group --build "$tree" "$out" >/dev/null
    say "$out/$name_of_file"
}

# --- allosaur-server ------------------------------------------------------------------------------------------

tree="$work/allosaur-server"
install -Ds "$scripts/allosaur-server" "$tree/usr/bin/allosaur-server"
install -Dm 644 "$parts/allosaur-server.service" "$tree/usr/lib/systemd/system/allosaur-server.service"
install -Dm 644 "$parts/allosaur.yaml" "$tree/etc/allosaur/allosaur.yaml"
install -Dm 644 -t "$tree/usr/share/doc/allosaur-server/examples" "$parts/af_xdp.conf" "$parts/dpdk.conf"
for list in "$work/wheel/$info"/sboms/*.json; do
    if [ -e "$list" ]; then install -Dm 644 "$list" "$tree/usr/share/doc/allosaur-server/sbom.cyclonedx.json"; fi
done
man="$work/man"
PYTHONPATH="$work/wheel" "$python" scripts/man.py "$man" "$tree/usr/bin/allosaur-server"
install -Dm 644 -t "$tree/usr/share/man/man8" "$man/allosaur-server.8"
mkdir -p "$tree/DEBIAN" "$work/shlibs/debian"
printf '/etc/allosaur/allosaur.yaml\n' >"$tree/DEBIAN/conffiles"
install -m 755 -t "$tree/DEBIAN" "$parts"/server/*
printf 'Source: allosaur\n\nPackage: allosaur-server\nArchitecture: any\n' >"$work/shlibs/debian/control"
libraries=$(cd "$work/shlibs" && dpkg-shlibdeps -O "$tree/usr/bin/allosaur-server" 2>/dev/null)
name_of_file="allosaur-server_${revision}_$arch.deb"
pack allosaur-server "$arch" net <<CONTROL
Depends: ${libraries#shlibs:Depends=}
Suggests: allosaur
Description: open, realistic traffic generator: its server
 Allosaur tests networks: it sends streams of packets and opens flows over TCP
 and UDP on a stack of its own, measures what arrives, and speaks TRex's RPC, so
 that scripts written for TRex work unchanged.
 .
 This is the server. It starts with two ports in memory; its unit is not enabled
 until you say so, as what its ports are is for you to say.
CONTROL

# --- allosaur -------------------------------------------------------------------------------------------------

tree="$work/allosaur"
packages="$tree/usr/lib/python3/dist-packages"
mkdir -p "$packages/$info" "$tree/usr/share/doc/allosaur"
cp -r "$work/wheel"/{allosaur,trex,trex_stl_lib} "$packages"
cp "$work/wheel/$info"/{METADATA,WHEEL} "$packages/$info"
find "$packages" -name __pycache__ -prune -exec rm -r {} +
private=/usr/lib/allosaur/python
PYTHONPATH="$work/wheel" "$python" scripts/bundle.py "$tree$private" >"$tree/usr/share/doc/allosaur/bundled.txt"
for command in allosaur t-rex-64 trex-console astf-sim emu-sim ndr; do
    mkdir -p "$tree/usr/bin"
    sed "1s|.*|#!/usr/bin/python3|; s|^import sys\$|import sys\n\nsys.path.insert(0, \"$private\")|" \
        "$scripts/$command" >"$tree/usr/bin/$command"
    chmod 755 "$tree/usr/bin/$command"
done
install -Dm 644 -t "$tree/usr/share/man/man1" "$man"/*.1
completion() {
    mkdir -p "$tree/usr/share/$2"
    PYTHONPATH="$work/wheel" "$python" -m allosaur.cli completion "$1" >"$tree/usr/share/$2/$3"
}
completion bash bash-completion/completions allosaur
completion zsh zsh/vendor-completions _allosaur
completion fish fish/vendor_completions.d allosaur.fish
mkdir -p "$tree/DEBIAN"
install -m 755 -t "$tree/DEBIAN" "$parts"/client/*
name_of_file="allosaur_${revision}_all.deb"
pack allosaur all net <<CONTROL
Depends: python3 (>= 3.10), python3-argcomplete, python3-prompt-toolkit (>= 3.0.36), python3-scapy (>= 2.5), python3-yaml, python3-zmq (>= 24)
Recommends: allosaur-server (= $revision)
Suggests: ipython3
Description: open, realistic traffic generator: command line and Python package
 Allosaur tests networks: it sends streams of packets and opens flows over TCP
 and UDP on a stack of its own, measures what arrives, and speaks TRex's RPC, so
 that scripts written for TRex work unchanged.
 .
 This is what you work with: the command "allosaur", the Python package, example
 profiles, and TRex's commands and import names.
CONTROL
