#!/usr/bin/env bash
# Makes the virtual environment .venv, or another one, unless a working one of a fitting Python is there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
: "${PYTHON:?run scripts/setup.sh first}"
venv=${1:-.venv}
if "$venv/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then exit 0; fi
"$PYTHON" -m venv --clear "$venv"
