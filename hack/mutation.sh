#!/usr/bin/env bash
# Measures the mutation score of the core with gremlins, built from its own module: it changes one operator or condition
# after the other and runs the tests of the package, as make test-unit does. Arguments are packages; without, all of the
# core. Progress goes to standard error.
#
# For each package: what the tests noticed (killed), and how much of that by using up ten times the processor time that the
# tests need; what they did not (lived); what no test runs; what does not compile and is left out; and the score, killed of
# killed and lived.
# What lives or is not run is listed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool="$ROOT/bin/gremlins"
module="$ROOT/hack/tools/gremlins"
if [[ ! -x "$tool" || "$module/go.sum" -nt "$tool" ]]; then
  "$GO" build -C "$module" -ldflags "-s -w" -o "$tool" github.com/go-gremlins/gremlins/cmd/gremlins
fi

if (($# == 0)); then
  set -- ./pkg/core/{resources,queue,ledger,owner,capacity,backlog,admission}
fi
out="$(mktemp -d)"
trap 'rm -rf "$out"' EXIT

# Each worker of gremlins copies the directory that it is called in: without what is built, and safe from edits meanwhile.
mkdir "$out/tree"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar --extract --directory "$out/tree"
cd "$out/tree"
GO_REAL="$(command -v "$GO")"
export GO_REAL PATH="$module/path:$PATH" TOO_LONG="$out/too-long"

for package in "$@"; do
  # Its own time-out, a multiple of what the tests take once they are compiled, is to strike never: it counts waiting too.
  go test -coverprofile "$out/coverage" "$package" >&2
  : >"$TOO_LONG"
  "$tool" unleash --workers "${WORKERS:-2}" --timeout-coefficient 1000 "$package" 2>&1 | tee "$out/log" >&2
  sed -n 's/^ *\(LIVED\|NOT COVERED\) /\1 /p' "$out/log" | sed "s#\$# in $package#" >>"$out/lived"
  awk -v package="${package#./}" -v long="$(wc -l <"$TOO_LONG")" '
    $1 == "KILLED" { killed++ }
    $1 == "TIMED" { timed++ }
    $1 == "LIVED" { lived++ }
    $1 == "NOT" && $2 == "COVERED" { unrun++ }
    $1 == "NOT" && $2 == "VIABLE" { broken++ }
    END {
      if (timed) { print "gremlins gave up waiting for " timed " of " package > "/dev/stderr"; exit 1 }
      tried = killed + lived
      printf "| `%s` | %d, %d too long | %d | %d | %d | %.1f %% |\n", package, killed, long, lived, unrun, broken, tried ? 100 * killed / tried : 0
    }' "$out/log" >>"$out/table"
done
printf '| package | killed | lived | not run | does not compile | score |\n|---|---|---|---|---|---|\n'
cat "$out/table"
printf '\n'
cat "$out/lived"
