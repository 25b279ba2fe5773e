#!/usr/bin/env bash
# manylinux.sh [ARCHITECTURE...]: wheels that need nothing of a system but its C library, for x86_64 and aarch64 or those
# that are named, and the source distribution that they are built of, into dist/manylinux. `make wheels` runs it in a bare
# Debian 12 (wheels.sh); it does as well on a machine that has Rust's library for these, flex, bison and make.
# The compiler and linker of C is Zig's, which has the symbols of each version of glibc. libzmq is compiled from the copy
# that its crate carries, and libpcap from its source (LIBPCAP_SOURCE=FILE, else that of the distribution, by apt): only its
# compiler of filters is in use, so there is no way to devices in it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
# The oldest C library that the wheels run with: RHEL 8, Debian 10, Ubuntu 18.10.
GLIBC=2.28
folder="$BUILD/wheels"
out="$ROOT/dist/manylinux"
bin="$folder/venv/bin"
architectures=("$@")
if [ "${#architectures[@]}" -eq 0 ]; then architectures=(x86_64 aarch64); fi
for arch in "${architectures[@]}"; do
    case $arch in
        x86_64 | aarch64) ;;
        *) fail "there are no wheels for '$arch'" 'they are for x86_64 and aarch64' ;;
    esac
done

# Rust's own library must be there for each architecture.
for arch in "${architectures[@]}"; do
    target="$arch-unknown-linux-gnu"
    if compgen -G "$(rustc --print target-libdir --target "$target")/libstd-*.rlib" >/dev/null; then continue; fi
    if command -v rustup >/dev/null && quietly rustup-target rustup target add "$target"; then continue; fi
    fail "the Rust compiler $(command -v rustc) has no library for $target" "with rustup: rustup target add $target" \
        "with Debian's rustc-web: sudo dpkg --add-architecture arm64 && sudo apt-get update" \
        "    && sudo apt-get install libstd-rust-web-dev:arm64 (rustc: libstd-rust-dev:arm64)" \
        "in a bare Debian 12, which has it: make wheels"
done
for tool in flex bison make; do
    command -v "$tool" >/dev/null || fail "$tool is missing" 'sudo apt-get install flex bison make'
done

mkdir -p "$folder" "$out"
scripts/venv.sh "$folder/venv"
"$bin/python" scripts/requirements.py pyproject.toml wheels >"$folder/requirements.txt"
say 'what builds wheels: maturin, Zig'
quietly wheels-venv "$bin/python" -m pip install -r "$folder/requirements.txt"

# --- the sources ----------------------------------------------------------------------------------------------

# libpcap's source by apt: from the same archives as the packages of this system, whose lists of sources may be off.
fetch_libpcap() {
    local at="$folder/apt" file
    mkdir -p "$at/lists/partial" "$at/parts"
    : >"$at/sources.list"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        if [ -f "$file" ]; then sed -n 's/^deb /deb-src /p' "$file" >>"$at/sources.list"; fi
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        if [ -f "$file" ]; then sed 's/^Types:.*/Types: deb-src/' "$file" >"$at/parts/${file##*/}"; fi
    done
    local apt=(apt-get -q -o "Dir::Etc::sourcelist=$at/sources.list" -o "Dir::Etc::sourceparts=$at/parts"
        -o "Dir::State::lists=$at/lists" -o APT::Sandbox::User=root)
    # An archive beside that has no sources is no harm.
    "${apt[@]}" update || true
    (cd "$folder" && "${apt[@]}" source --download-only libpcap)
}

source=${LIBPCAP_SOURCE:-}
if [ -z "$source" ]; then
    if ! compgen -G "$folder/libpcap_*.orig.tar.*z" >/dev/null; then
        say 'the source of libpcap'
        quietly wheels-libpcap-source fetch_libpcap ||
            fail 'the source of libpcap cannot be had by apt' 'name its archive: LIBPCAP_SOURCE=/path/to/libpcap-1.10.5.tar.xz'
    fi
    source=$(compgen -G "$folder/libpcap_*.orig.tar.*z")
fi
[ -f "$source" ] || fail "there is no archive $source" 'LIBPCAP_SOURCE names the archive of a release of libpcap'

# The source distribution, as others would build it, but for the file that links the system's libzmq. It lies outside of
# the checkout, whose own such file counts for all that is below.
tree="${XDG_CACHE_HOME:-$HOME/.cache}/allosaur/wheels"
rm -rf "$tree.new" "$out"/allosaur-*.tar.gz
quietly wheels-sdist "$bin/python" -m maturin sdist --out "$out"
sdist=$(compgen -G "$out/allosaur-*.tar.gz")
# maturin's archive has lost that the commands are programs, and pip takes their modes from it.
rm -rf "$folder/sdist" && mkdir "$folder/sdist"
tar -xf "$sdist" -C "$folder/sdist"
chmod +x "$folder"/sdist/*/scripts/wheel-data/scripts/*
tar -czf "$sdist" --sort=name --owner=0 --group=0 --numeric-owner -C "$folder/sdist" "$(basename "$sdist" .tar.gz)"
mkdir -p "$tree" "$tree.new/licenses"
# The archive's times say nothing, and by times cargo knows what changed: what did not keeps its time of before.
tar -xmf "$sdist" -C "$tree.new" --strip-components 1
(cd "$tree.new" && find . -type f -print0) | while IFS= read -r -d '' file; do
    if cmp -s "$tree/$file" "$tree.new/$file"; then touch -r "$tree/$file" "$tree.new/$file"; fi
done
rm -rf "$tree"
mv "$tree.new" "$tree"
rm "$tree/.cargo/config.toml"
# What is linked into the program has licences of its own, which travel with it.
sed -i 's|^license-files = .*|license-files = ["LICENSE", "licenses/*"]|' "$tree/pyproject.toml"
tar -xOf "$source" --wildcards '*/LICENSE' >"$tree/licenses/libpcap.txt"
(cd "$tree" && quietly wheels-fetch cargo fetch --locked)
libzmq=$(cd "$tree" && cargo metadata --locked --offline --format-version 1 --filter-platform x86_64-unknown-linux-gnu |
    "$bin/python" -c 'import json, sys
(one,) = (one for one in json.load(sys.stdin)["packages"] if one["name"] == "zeromq-src")
print(one["manifest_path"])')
vendor="${libzmq%/*}/vendor"
# The LGPL with its exception for static linking, the GPL that it adds to, and what libzmq brings of others.
cp "$vendor/COPYING.LESSER" "$tree/licenses/libzmq.txt"
cp "$vendor/COPYING" "$tree/licenses/libzmq-gpl.txt"
cp "$vendor/external/sha1/license.txt" "$tree/licenses/libzmq-sha1.txt"
zig=$("$bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')
cp "$zig/lib/libcxx/LICENSE.TXT" "$tree/licenses/libcxx.txt"
cp "$zig/LICENSE" "$tree/licenses/zig.txt"

# --- a wheel --------------------------------------------------------------------------------------------------

compile_libpcap() { # compile_libpcap ARCHITECTURE FOLDER
    local zig="$2/cc"
    rm -rf "$2" && mkdir -p "$2/source" "$2/lib"
    tar -xf "$source" -C "$2/source" --strip-components 1
    printf '#!/bin/sh\nexec "%s" -m ziglang cc -target %s-linux-gnu.%s "$@"\n' "$bin/python" "$1" "$GLIBC" >"$zig"
    chmod +x "$zig"
    (
        cd "$2/source"
        CC="$zig" AR="$folder/ar" RANLIB="$folder/ranlib" CFLAGS=-O2 ./configure --host="$1-linux-gnu" --with-pcap=null \
            --disable-shared --disable-usb --disable-dbus --disable-bluetooth --disable-rdma --without-libnl
        make libpcap.a
    )
    cp "$2/source/libpcap.a" "$2/lib"
    # The crate asks for a shared library, and Zig takes no other: a linker script has the name of one.
    printf 'INPUT(%s)\n' "$2/lib/libpcap.a" >"$2/lib/libpcap.so"
}
for tool in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$bin/python" "$tool" >"$folder/$tool"
    chmod +x "$folder/$tool"
done
libpcap_version=$(tar -xOf "$source" --wildcards '*/VERSION')

for arch in "${architectures[@]}"; do
    say "libpcap $libpcap_version for $arch"
    quietly "wheels-libpcap-$arch" compile_libpcap "$arch" "$folder/libpcap-$arch"
    say "the wheel for $arch (minutes)"
    rm -f "$out"/allosaur-*"_$arch.whl"
    (
        cd "$tree"
        export PATH="$bin:$PATH" CARGO_TARGET_DIR="$folder/target" CARGO_PROFILE_RELEASE_LTO=thin
        LIBPCAP_LIBDIR="$folder/libpcap-$arch/lib" LIBPCAP_VER="$libpcap_version" quietly "wheels-$arch" \
            "$bin/python" -m maturin build --release --locked --strip --zig --compatibility "manylinux_${GLIBC/./_}" \
            --target "$arch-unknown-linux-gnu" --out "$out"
    )
    wheel=$(compgen -G "$out/allosaur-*_$arch.whl")
    tag="manylinux_${GLIBC/./_}_$arch"
    quietly "wheels-audit-$arch" "$bin/auditwheel" show "$wheel"
    tr '\n' ' ' <"$LOGS/wheels-audit-$arch.log" | grep -q "platform tag: *\"$tag\"" ||
        fail "auditwheel does not find that $wheel is for $tag" "$(cat "$LOGS/wheels-audit-$arch.log")"
    say "${wheel#"$ROOT"/}"
done
