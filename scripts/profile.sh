#!/usr/bin/env bash
# profile.sh FILE [OPTION...]: a profile for the compiler (-Cprofile-use) of what the server does under load, into FILE: an
# instrumented server is built with these options of cargo, and bench/training.py loads it. Needs llvm-profdata of the
# compiler's LLVM: a component of rustup, which is added, or of the distribution.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
file=$1
shift
folder="$BUILD/profile"
python="$ROOT/.venv/bin/python"

host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
find_merger() {
    local path
    for path in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "/usr/lib/llvm-$llvm/bin/llvm-profdata"; do
        if [ -x "$path" ]; then
            printf '%s\n' "$path"
            return
        fi
    done
    command -v "llvm-profdata-$llvm" || true
}
merger=$(find_merger)
if [ -z "$merger" ] && command -v rustup >/dev/null && rustup component add llvm-tools; then merger=$(find_merger); fi
[ -n "$merger" ] || fail "llvm-profdata of LLVM $llvm, the compiler's, is missing" \
    'with rustup: rustup component add llvm-tools' "else: sudo apt-get install llvm-$llvm"

rm -rf "$folder"
mkdir -p "$folder"
env RUSTFLAGS="-Cprofile-generate=$folder" CARGO_TARGET_DIR="$ROOT/target/profile" \
    cargo build --release --locked -p allosaur-server --no-default-features "$@"
# A process each, and one file for several that ran one after the other.
LLVM_PROFILE_FILE="$folder/%4m.profraw" PYTHONPATH="$ROOT/python:$ROOT/bench" \
    "$python" bench/training.py --server "$ROOT/target/profile/release/allosaur-server"
"$merger" merge --output "$file" "$folder"/*.profraw
# Cargo does not see that a profile of the same name is another one.
rm -rf "$folder" "$ROOT/target/pgo"
