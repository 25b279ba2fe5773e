#!/usr/bin/env bash
# Makes an environment of its own for TRex's official client, and prints its Python. Does nothing the second time.
# The package brings the client's own old Scapy, YAML and ZeroMQ; it must not meet ours.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CLIENT=lbr-trex-client==3.4.0
# Python 3.12 dropped modules that the client uses; six stands in for a part of them (modern_python.py).
COMPANION=six==1.17.0

folder="$BUILD/official-client"
mkdir -p "$BUILD"
# Tests that run at the same time make it once.
exec 9>"$folder.lock"
flock 9
stamp="$folder/made-of"
wanted="$CLIENT $COMPANION"
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || ! "$folder/bin/python" -c '' 2>/dev/null; then
    rm -rf "$folder"
    "${PYTHON:-python3}" -m venv "$folder" >&2
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$CLIENT" "$COMPANION" >&2
    printf '%s\n' "$wanted" >"$stamp"
fi
printf '%s\n' "$folder/bin/python"
