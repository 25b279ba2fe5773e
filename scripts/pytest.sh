#!/usr/bin/env bash
# pytest.sh TESTS_AT_ONCE: runs all Python tests, as many at once. What fails while the host of a virtual machine takes
# its CPUs away (steal time) is run again at the end, one test at a time: tests beside it take CPUs away, too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$ROOT"
python="$ROOT/.venv/bin/python"
beside=(-m 'not alone')
# In percent. A failure on a machine whose CPUs are its own stays one.
stolen_max=5

steal() { awk '$1 == "cpu" { print $9, $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat; }

read -r stolen_before wanted_before < <(steal)
status=0
scripts/step.sh --show pytest 'Python and end-to-end tests' \
    "$python" -m pytest tests "${beside[@]}" -n "$1" --dist worksteal || status=$?
read -r stolen wanted < <(steal)
share=$((100 * (stolen - stolen_before) / (wanted - wanted_before + 1)))

if [ "$status" -eq 1 ] && [ "$share" -ge "$stolen_max" ]; then
    status=0
    scripts/step.sh --show pytest-again "the host took $share % of the CPUs: what failed, again, one at a time" \
        "$python" -m pytest tests "${beside[@]}" --last-failed --last-failed-no-failures none || status=$?
fi
exit "$status"
