#!/usr/bin/env bash
# Measures the mutation score of the core with gremlins, built from its own module: it changes one operator or condition
# after the other and runs the tests of the package. Arguments are packages; without, all of the core.
#
# For each package: what the tests noticed (killed), what they did not (lived), what made them run too long (timed out;
# noticed too), what no test runs, and the score, noticed of all that is run. What lives is listed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool="$ROOT/bin/gremlins"
module="$ROOT/hack/tools/gremlins"
if [[ ! -x "$tool" || "$module/go.sum" -nt "$tool" ]]; then
  "$GO" build -C "$module" -ldflags "-s -w" -o "$tool" github.com/go-gremlins/gremlins/cmd/gremlins
fi

if (($# == 0)); then
  set -- ./pkg/core/resources ./pkg/core/queue ./pkg/core/ledger ./pkg/core/admission
fi
out="$(mktemp -d)"
trap 'rm -rf "$out"' EXIT
export PROPERTY_SHRINKTIME=0s # that a property fails is enough
printf '| package | killed | timed out | lived | not run | score |\n|---|---|---|---|---|---|\n'
for package in "$@"; do
  "$tool" unleash --workers "${WORKERS:-2}" --timeout-coefficient 30 "$package" >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
  sed -n 's/^ *LIVED /LIVED /p' "$out/log" | sed "s#\$# in $package#" >>"$out/lived"
  awk -v package="${package#./}" '
    $1 == "KILLED" { killed++ }
    $1 == "TIMED" { timed++ }
    $1 == "LIVED" { lived++ }
    $1 == "NOT" && $2 == "COVERED" { unrun++ }
    END {
      tried = killed + timed + lived
      printf "| `%s` | %d | %d | %d | %d | %.1f %% |\n", package, killed, timed, lived, unrun, tried ? 100 * (killed + timed) / tried : 0
    }' "$out/log"
done
printf '\n'
cat "$out/lived"
