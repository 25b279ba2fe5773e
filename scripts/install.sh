#!/usr/bin/env bash
# install.sh: builds the server and installs it with the Python package into .venv; MATURIN_PEP517_ARGS has its features.
# The packages that it needs come meanwhile: the compiler leaves CPUs idle for minutes, where one crate is left.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
python="$ROOT/.venv/bin/python"
"$python" scripts/requirements.py pyproject.toml run >"$BUILD/run-requirements.txt"
"$python" -m pip install -r "$BUILD/run-requirements.txt" &
packages=$!
"$python" -m pip install --no-deps .
wait "$packages"
