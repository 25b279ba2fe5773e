# Sourced by the scripts beside it: where things are, progress lines, and commands that keep their log.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
BUILD="$ROOT/.build"
LOGS="$BUILD/logs"
mkdir -p "$LOGS"

# scripts/setup.sh writes here where it found the Rust tools and which Python it chose.
if [ -f "$BUILD/env.sh" ]; then
    # shellcheck disable=SC1091
    . "$BUILD/env.sh"
fi

say() { printf '==> %s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$1" >&2
    shift
    if [ $# -gt 0 ]; then printf '  %s\n' "$@" >&2; fi
    exit 1
}

# quietly NAME COMMAND...: runs the command with its output in .build/logs/NAME.log; on failure shows the end of it.
quietly() {
    local log="$LOGS/$1.log" status=0
    shift
    "$@" >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        printf 'error: this failed (exit status %s): %s\n' "$status" "$*" >&2
        tail -n 60 "$log" >&2
        printf 'the whole log is in %s\n' "${log#"$ROOT"/}" >&2
    fi
    return "$status"
}
