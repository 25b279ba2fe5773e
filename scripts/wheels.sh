#!/usr/bin/env bash
# wheels.sh [ARCHITECTURE...]: manylinux wheels for x86_64 and aarch64, or those that are named, and the source
# distribution, into dist/manylinux. They are built by scripts/manylinux.sh in a bare Debian 12, which has a Rust compiler
# with the libraries of both; it lies in .build/wheels, and is kept for the next time. Needs root and mmdebstrap.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
SUITE=bookworm
PACKAGES=(ca-certificates cargo-web rustc-web python3-venv gcc libc6-dev make flex bison xz-utils)
RUST_LIBRARY=libstd-rust-web-dev # for each architecture
system="$BUILD/wheels/system"
out="$ROOT/dist/manylinux"

[ "$(id -u)" -eq 0 ] || fail 'a bare system needs root' 'type: sudo make wheels' \
    'or, with Rust for both architectures on this machine: scripts/manylinux.sh'
command -v mmdebstrap >/dev/null || fail 'mmdebstrap is missing' 'type: sudo apt-get install mmdebstrap'

native=$(dpkg --print-architecture)
case $native in
    amd64) foreign=arm64 ;;
    arm64) foreign=amd64 ;;
    *) fail "wheels are built on amd64 and arm64, not on $native" ;;
esac

# --- the system -----------------------------------------------------------------------------------------------

make_system() {
    local packages=("${PACKAGES[@]}" "$RUST_LIBRARY:$native" "$RUST_LIBRARY:$foreign")
    rm -rf "$system" "$system.new"
    # A mirror may be weeks behind: its signature counts, not its age.
    mmdebstrap --variant=apt --mode=root --architectures="$native,$foreign" --include="$(IFS=,; echo "${packages[*]}")" \
        --aptopt='Acquire::Check-Valid-Until "false"' "$SUITE" "$system.new"
    mv "$system.new" "$system"
}
mkdir -p "$BUILD/wheels" "$out"
if [ ! -d "$system" ]; then
    say "a bare Debian 12 with Rust for $native and $foreign"
    quietly wheels-system make_system
fi
cp /etc/resolv.conf "$system/etc/resolv.conf"
# Whom this machine trusts: the way to the indexes may have a proxy with a certificate of its own.
certificates=/etc/ssl/certs/ca-certificates.crt
if [ -f "$certificates" ]; then cp "$certificates" "$system$certificates"; fi

# --- the build ------------------------------------------------------------------------------------------------

# What git would have in a checkout, with what is not committed yet; what was built the last time stays.
tree="$system/allosaur"
mkdir -p "$tree"
find "$tree" -mindepth 1 -maxdepth 1 ! -name .build -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [ -f "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
done | tar --create --no-recursion --null --files-from=- | tar --extract --directory="$tree"

# In a namespace of its own, so that nothing stays mounted.
# shellcheck disable=SC2016 # its own words
inside='root=$1; shift; mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"; exec chroot "$root" "$@"'
unshare --mount sh -ec "$inside" sh "$system" env -u RUSTUP_TOOLCHAIN -u CARGO_TARGET_DIR \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CARGO_HOME=/root/.cargo PYTHON=/usr/bin/python3 \
    PIP_CERT="$certificates" LIBPCAP_SOURCE= /allosaur/scripts/manylinux.sh "$@"
cp "$tree"/dist/manylinux/* "$out"
say "in ${out#"$ROOT"/}: $(cd "$tree/dist/manylinux" && echo *)"
