#!/usr/bin/env bash
# step.sh [--show] NAME TEXT COMMAND...: runs one step of the Makefile, says what it is and how long it took.
# Quiet steps keep their output in .build/logs/NAME.log and print the end of it when they fail; --show prints all.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

show=no
if [ "$1" = --show ]; then
    show=yes
    shift
fi
name=$1
text=$2
shift 2

cd "$ROOT"
say "$text"
SECONDS=0
if [ "$show" = yes ]; then
    "$@"
else
    quietly "$name" "$@"
fi
if [ "$SECONDS" -ge 5 ]; then printf '    done in %d s\n' "$SECONDS"; fi
