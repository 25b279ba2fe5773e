#!/usr/bin/env bash
# setup.sh [--tests]: checks that this machine has what Allosaur needs to build, and installs from the distribution what
# is missing (as root, or with sudo that asks no password). Where it may not install, it says what to type. It changes
# nothing when all is there. What it found goes to .build/env.sh, which scripts/common.sh reads. With --tests the same for
# what tests put in front of it: routers, servers, clients, daemons. Tests are skipped without.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for_tests=no
case "$*" in
    '') ;;
    --tests) for_tests=yes ;;
    *) fail "setup.sh takes only --tests, not '$*'" ;;
esac

RUST_NEEDED=1.85 # `rust-version` in Cargo.toml
PYTHON_NEEDED=3.10 # `requires-python` in pyproject.toml

# --- apt ------------------------------------------------------------------------------------------------------

# The words in front of a command that needs root: none as root, sudo where it asks nothing, else we cannot.
as_root=()
can_install=no
if command -v apt-get >/dev/null; then
    if [ "$(id -u)" -eq 0 ]; then
        can_install=yes
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        can_install=yes
        as_root=(sudo)
    fi
fi

lists_are_fresh=no

refresh_lists() {
    if [ "$lists_are_fresh" = yes ] || [ "$can_install" = no ]; then return; fi
    say "reading the list of system packages"
    quietly apt-update "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update ||
        printf '    going on with the lists that are there\n'
    lists_are_fresh=yes
}

# The version that apt would install, or nothing.
candidate() {
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p' | grep -v '(none)' || true
}

apt_install() {
    say "installing system packages: $*"
    # Without lists there are no candidates; with old ones a download fails. Both are cured by reading them.
    local package
    for package in "$@"; do
        if [ -z "$(candidate "$package")" ]; then
            refresh_lists
            break
        fi
    done
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
        apt-get install -y --no-install-recommends "$@")
    if [ "$lists_are_fresh" = yes ]; then
        quietly apt-install "${install[@]}"
    elif ! "${install[@]}" >"$LOGS/apt-install.log" 2>&1; then
        refresh_lists
        quietly apt-install "${install[@]}"
    fi
}

# --- versions -------------------------------------------------------------------------------------------------

# at_least HAVE NEED: compares dotted versions; Debian's epoch and suffixes are ignored.
at_least() {
    local have=${1#*:}
    [ "$(printf '%s\n%s\n' "$2" "${have%%[-+~]*}" | sort -V | head -n 1)" = "$2" ]
}

# --- Rust -----------------------------------------------------------------------------------------------------

# Folders where a cargo may be that is not on PATH: rustup's own, and Ubuntu's packages that carry a version.
rust_folders() {
    printf '%s\n' "${CARGO_HOME:-$HOME/.cargo}/bin"
    local folder
    for folder in /usr/lib/rust-*/bin; do
        if [ -d "$folder" ]; then printf '%s\n' "$folder"; fi
    done | sort -rV
}

# Sets rust_bin to the folder of a cargo that is new enough, looking at PATH first.
find_rust() {
    local folder version
    rust_bin=
    while IFS= read -r folder; do
        if [ ! -x "$folder/cargo" ] || [ ! -x "$folder/rustc" ]; then continue; fi
        version="$(PATH="$folder:$PATH" "$folder/cargo" --version 2>/dev/null | cut -d' ' -f2)"
        if [ -n "$version" ] && at_least "$version" "$RUST_NEEDED"; then
            rust_bin=$folder
            return 0
        fi
    done < <(
        if command -v cargo >/dev/null; then dirname "$(command -v cargo)"; fi
        rust_folders
    )
    return 1
}

has_rust_tool() { PATH="$rust_bin:$PATH" cargo "$1" --version >/dev/null 2>&1; }

# The names of a package family of the distribution that is new enough: cargo, compiler, linter, formatter.
rust_packages() {
    if at_least "$(candidate cargo)" "$RUST_NEEDED"; then
        printf 'cargo rustc rust-clippy rustfmt\n'
    elif at_least "$(candidate cargo-web)" "$RUST_NEEDED"; then
        printf 'cargo-web rustc-web rust-web-clippy rustfmt-web\n'
    else
        local package version
        # Ubuntu: cargo-1.85 with rustc-1.85, ...
        while IFS= read -r package; do
            version=${package#cargo-}
            if at_least "$version" "$RUST_NEEDED"; then
                printf 'cargo-%s rustc-%s rust-%s-clippy rustfmt-%s\n' "$version" "$version" "$version" "$version"
                return
            fi
        done < <(apt-cache --names-only search '^cargo-[0-9.]+$' | cut -d' ' -f1 | sort -rV)
    fi
}

# What to type for a new enough Rust, as far as the package lists of this machine tell.
rust_advice() {
    local packages
    packages="$(rust_packages)"
    if [ -n "$packages" ]; then
        printf 'sudo apt-get install %s\n' "$packages"
    elif [ -n "$(candidate rustup)" ]; then
        printf 'sudo apt-get install rustup\n'
        printf 'rustup toolchain install stable --profile minimal -c clippy -c rustfmt\n'
    else
        printf 'sudo apt-get update    (then run make again; with newer package lists it may find one)\n'
        printf 'or install Rust with rustup, as its own web page says; it needs no root\n'
    fi
}

rust_help() {
    fail "Rust is missing: cargo and rustc $RUST_NEEDED or newer, with clippy and rustfmt. Please type:" \
        "$(rust_advice | sed '2,$s/^/  /')" \
        "then run make again."
}

install_rust() {
    if [ "$can_install" = no ]; then rust_help; fi
    refresh_lists
    local packages
    packages="$(rust_packages)"
    if [ -n "$packages" ]; then
        # shellcheck disable=SC2086 # one word for each package
        apt_install $packages
    elif [ -n "$(candidate rustup)" ]; then
        apt_install rustup
        say "installing the stable Rust toolchain with rustup"
        quietly rustup rustup toolchain install stable --profile minimal -c clippy -c rustfmt
    else
        rust_help
    fi
    find_rust || rust_help
}

# --- Python ---------------------------------------------------------------------------------------------------

# Can make a virtual environment, and is new enough.
python_is_good() {
    "$1" -c "import sys, venv, ensurepip
sys.exit(sys.version_info < tuple(map(int, '$PYTHON_NEEDED'.split('.'))))" >/dev/null 2>&1
}

find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        if command -v "$name" >/dev/null && python_is_good "$name"; then
            # The interpreter itself: a version manager's shim may answer differently in another folder.
            python="$("$name" -c 'import sys; print(sys.executable)')"
            return 0
        fi
    done
    return 1
}

# --- the checks -----------------------------------------------------------------------------------------------

has_tool() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

# One line for each thing that must be there: what it is, the test, the package that has it.
missing_packages() {
    # A compiler alone is not enough: without the C library's files nothing links.
    if ! printf 'int main(void) { return 0; }' | cc -x c - -o /dev/null 2>/dev/null; then
        printf 'gcc libc6-dev\n'
    fi
    if ! command -v pkg-config >/dev/null; then
        printf 'pkg-config libzmq3-dev libpcap-dev\n'
    else
        if ! pkg-config --exists 'libzmq >= 4.1'; then printf 'libzmq3-dev\n'; fi
        if ! pkg-config --exists libpcap; then printf 'libpcap-dev\n'; fi
    fi
    if ! find_python; then printf 'python3 python3-venv\n'; fi
    # Makes the networks that ports on interfaces are tested on.
    if ! has_tool ip; then printf 'iproute2\n'; fi
    # Rust's package manager trusts the system's certificates; a bare system has none.
    if [ ! -e /etc/ssl/certs/ca-certificates.crt ] && [ -z "${SSL_CERT_FILE:-}${CARGO_HTTP_CAINFO:-}" ]; then
        printf 'ca-certificates\n'
    fi
}

# Daemons in front of emulated clients: the program, and the package that has it.
DAEMONS=(
    dnsmasq:dnsmasq-base kea-dhcp4:kea-dhcp4-server kea-dhcp6:kea-dhcp6-server dhcrelay:isc-dhcp-relay radvd:radvd
    hostapd:hostapd freeradius:freeradius lldpd:lldpd avahi-daemon:avahi-daemon avahi-resolve:avahi-utils dbus-daemon:dbus-daemon
    unbound:unbound pppoe-server:pppoe pppd:ppp nfcapd:nfdump smcrouted:smcroute
)

# The same for what only some tests need: routers, NATs and bridges under test, the servers and clients that our TCP
# talks to, and the shells whose completion is tried; and the linter of scripts. Without it they are skipped.
wished_packages() {
    if ! has_tool nft; then printf 'nftables\n'; fi
    if ! has_tool conntrack; then printf 'conntrack\n'; fi
    if ! has_tool ethtool; then printf 'ethtool\n'; fi
    if ! has_tool nginx; then printf 'nginx\n'; fi
    if ! has_tool curl; then printf 'curl\n'; fi
    if ! has_tool tcpdump; then printf 'tcpdump\n'; fi
    if ! has_tool wrk; then printf 'wrk\n'; fi
    if ! has_tool tshark; then printf 'tshark\n'; fi
    if ! has_tool zsh; then printf 'zsh\n'; fi
    if ! has_tool fish; then printf 'fish\n'; fi
    if ! has_tool bird; then printf 'bird2\n'; fi
    if [ ! -x /usr/lib/frr/bgpd ]; then printf 'frr\n'; fi
    if ! has_tool iperf3; then printf 'iperf3\n'; fi
    if ! has_tool groff; then printf 'groff-base\n'; fi
    if ! has_tool shellcheck; then printf 'shellcheck\n'; fi
    local daemon
    for daemon in "${DAEMONS[@]}"; do
        if ! has_tool "${daemon%%:*}"; then printf '%s\n' "${daemon#*:}"; fi
    done
}

# Tests start servers and daemons of their own; packages would start them for the whole system, now and at each boot.
# While this file is there, Debian's packages start nothing.
POLICY=/usr/sbin/policy-rc.d

install_wished() {
    local made=no
    if [ ! -e "$POLICY" ]; then
        # 101: the action is forbidden by policy.
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$POLICY" && made=yes
    fi
    # What this system does not have shall not keep the others away.
    local package known=() failed=no
    for package in "$@"; do
        if [ -z "$(candidate "$package")" ]; then refresh_lists; fi
        if [ -n "$(candidate "$package")" ]; then known+=("$package"); else failed=yes; fi
    done
    if [ "${#known[@]}" -gt 0 ]; then apt_install "${known[@]}" || failed=yes; fi
    if [ "$made" = yes ]; then "${as_root[@]}" rm -f "$POLICY"; fi
    if command -v systemctl >/dev/null; then
        # The services of packages have their names; what is none is passed over.
        for package in "${known[@]}"; do
            "${as_root[@]}" systemctl disable "$package" "$package.socket" >/dev/null 2>&1 || true
        done
    fi
    [ "$failed" = no ]
}

say "checking system packages"
missing="$(missing_packages | tr '\n' ' ')"
if [ -n "$missing" ]; then
    if [ "$can_install" = no ]; then
        rust="$(find_rust || rust_advice)"
        fail "system packages are missing: ${missing% }${rust:+, and Rust $RUST_NEEDED or newer}" \
            "This script may not install them: it is not root, has no sudo without a password, or finds no apt-get." \
            "Please type:" \
            "sudo apt-get update && sudo apt-get install ${missing% }" \
            ${rust:+"$(sed '2,$s/^/  /' <<<"$rust")"} \
            "then run make again."
    fi
    # shellcheck disable=SC2086 # one word for each package
    apt_install $missing
    still="$(missing_packages | tr '\n' ' ')"
    if [ -n "$still" ]; then
        fail "these are still missing after installing them: $still" \
            "Python must be $PYTHON_NEEDED or newer; set PYTHON=/path/to/python3 if yours is elsewhere."
    fi
fi
wished=
if [ "$for_tests" = yes ]; then wished="$(wished_packages | tr '\n' ' ')"; fi
if [ -n "$wished" ]; then
    # shellcheck disable=SC2086 # one word for each package
    if [ "$can_install" = no ] || ! install_wished $wished; then
        printf '    tests with real devices, servers and clients are skipped without these packages: %s\n' "${wished% }"
    fi
fi
find_python

find_rust || install_rust
if ! has_rust_tool clippy || ! has_rust_tool fmt; then
    if [ -x "$rust_bin/rustup" ]; then
        say "adding clippy and rustfmt with rustup"
        quietly rustup "$rust_bin/rustup" component add clippy rustfmt
    else
        install_rust
    fi
fi

# shellcheck disable=SC2016 # $PATH is for the reader of the file
{
    printf 'export PATH=%q:$PATH\n' "$rust_bin"
    printf 'PYTHON=%q\n' "$python"
} >"$BUILD/env.sh"
say "found $(PATH="$rust_bin:$PATH" cargo --version | cut -d' ' -f1,2), $("$python" --version), libzmq $(pkg-config --modversion libzmq)"
