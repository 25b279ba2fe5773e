#!/usr/bin/env bash
# fuzz.sh [--time SECONDS] [TARGET...]: runs each fuzz target, or those that are named, for a while (20 s each).
# It begins with the seeds in fuzz/seeds and keeps what it finds interesting in fuzz/corpus. Exits with 1 when a target
# found something. cargo-fuzz is installed where it is missing; the stable compiler will do (RUSTC_BOOTSTRAP).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
seconds=20
targets=()
while [ $# -gt 0 ]; do
    case $1 in
        --time)
            seconds=${2:-}
            [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "--time takes whole seconds, from 1 on, not '$seconds'"
            shift
            ;;
        -*) fail "unknown option '$1'" 'usage: make fuzz ARGS="[--time SECONDS] [TARGET...]"' ;;
        *) targets+=("$1") ;;
    esac
    shift
done

known=()
for file in fuzz/fuzz_targets/*.rs; do
    file=${file##*/}
    known+=("${file%.rs}")
done
if [ "${#targets[@]}" -eq 0 ]; then targets=("${known[@]}"); fi
for target in "${targets[@]}"; do
    [ -f "fuzz/fuzz_targets/$target.rs" ] || fail "there is no fuzz target '$target'" "they are: ${known[*]}"
done

export RUSTC_BOOTSTRAP=1
if ! command -v cargo-fuzz >/dev/null && [ ! -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo-fuzz" ]; then
    say 'cargo-fuzz'
    quietly cargo-fuzz cargo install cargo-fuzz --locked
fi

# Nothing here has unsafe code that a sanitizer could watch; without one, targets are twice as fast. Where bytes are
# decisions, not formats, there are no values to be guessed from comparisons either: twice as fast again.
flags_of() {
    printf '%s\n' --sanitizer none
    case $1 in stateful | tcp) printf '%s\n' --no-trace-compares ;; esac
}

say 'fuzz targets (the first build takes minutes)'
for target in "${targets[@]}"; do
    mapfile -t flags < <(flags_of "$target")
    quietly "fuzz-build-$target" cargo fuzz build "${flags[@]}" "$target"
done

failed=()
for target in "${targets[@]}"; do
    log="$LOGS/fuzz-$target.log"
    mkdir -p "fuzz/corpus/$target"
    say "fuzz: $target, $seconds s"
    status=0
    mapfile -t flags < <(flags_of "$target")
    cargo fuzz run "${flags[@]}" "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -print_final_stats=1 -timeout=60 >"$log" 2>&1 || status=$?
    stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }
    printf '    %s executions, %s a second; %s new inputs in fuzz/corpus/%s\n' \
        "$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" "$(stat new_units_added)" "$target"
    if [ "$status" -ne 0 ]; then
        failed+=("$target")
        printf 'error: %s found something (exit status %s); the whole log is in %s\n' \
            "$target" "$status" "${log#"$ROOT"/}" >&2
        grep -A4 'panicked at\|ERROR: \|Failing input\|cargo fuzz run' "$log" | tail -n 40 >&2
    fi
done
if [ "${#failed[@]}" -gt 0 ]; then fail "fuzzing found something: ${failed[*]}"; fi
say 'nothing was found'
