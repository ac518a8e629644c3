#!/usr/bin/env bash
# Runs tests, in sections that say how long they took:
#
#   hack/test.sh unit          unit tests, stories and properties; no control plane
#   hack/test.sh properties    every property of the core 100,000 times, with short histories
#   hack/test.sh fuzz          every fuzz target with some thousand inputs
#   hack/test.sh differential  random histories, compared with ElasticQuota itself; HISTORIES=n for another number
#   hack/test.sh race          the packages with goroutines, and the core, under the race detector
#   hack/test.sh sim           SEEDS plans of the simulator (500), and every write of its corpus made to fail
#   hack/test.sh integration   against a real API server and etcd
#   hack/test.sh e2e           against the control plane of the demo, scheduler and controller included
#   hack/test.sh chaos         the same with its processes killed and paused, for 50 seconds and until all is done again
#   hack/test.sh               all of these
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Packages under the race detector: everything with goroutines of its own that does not link the scheduler.
RACE=(pkg/core pkg/engine pkg/controller pkg/jobs)

# Random histories differ from version to version, and are the same ones wherever the same files are tested. SEED is another
# start.
seed() {
  local tree
  tree="$(git rev-parse 'HEAD^{tree}' 2>/dev/null)" || tree=1
  echo "${SEED:-$((16#${tree:0:8}))}"
}

unit() {
  local list
  list="$(unit_packages)" || return
  # shellcheck disable=SC2086 # one pattern per word
  step "unit tests, stories and properties" "$GO" test -short -timeout 15m $list
}

# Random histories that ElasticQuota and the queue are compared over; the unit tests run a hundred of them.
differential() {
  step "differential test: 10,000 histories against ElasticQuota" "$GO" test -count=1 -timeout 15m ./pkg/quota \
    -run '^TestDifferential$' -rapid.checks="${HISTORIES:-10000}" -rapid.seed="$(seed)"
}

# PROPERTY_CHECKS of every property. From 10,000 on each history is short (pkg/testing/effort).
properties() {
  local checks="${PROPERTY_CHECKS:-100000}"
  step "properties of the core, $checks checks each" \
    "$GO" test -count=1 -timeout 20m ./pkg/core/... -rapid.checks="$checks" -rapid.seed="$(seed)" -rapid.nofailfile
}

# FUZZ_TIME of every target: a number of inputs, since the fuzzer may call it a failure when time ends while it works on one.
# What is found is written to testdata/fuzz of the package: commit it with the repair.
# Packages that link the scheduler have no fuzz targets: the fuzzer compiles all that a test links anew.
fuzz() {
  local package target
  while IFS=: read -r package target; do
    step "fuzz $target" "$GO" test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ_TIME:-3000x}" -fuzzminimizetime 20x -parallel 2
  done < <(grep -rho --include='*_test.go' -e '^func Fuzz[A-Za-z0-9]*' pkg --with-filename | sed -E 's#/[^/]*:func #:#' | sort)
}

race() {
  local list
  mapfile -t list < <(existing "${RACE[@]}")
  step "race detector: ${RACE[*]}" env CGO_ENABLED=1 "$GO" test -race -short -timeout 15m "${list[@]}"
}

simulate() {
  step "simulator: ${SEEDS:=500} plans, and every write of the corpus made to fail" "$GO" run ./test/sim -seeds "$SEEDS" -crashes
}

# What the tests below start; a second call rebuilds nothing.
binaries() {
  step "build what the tests start" "$GO" run ./cmd/jobqueue-playground build
}

integration() {
  local list
  mapfile -t list < <(existing test/integration)
  if ((${#list[@]} == 0)); then
    echo "no integration tests" >&2
    return 1
  fi
  step "integration tests: a real API server and etcd" "$GO" test -count=1 -p 1 -timeout 15m ./test/controlplane/... "${list[@]}"
}

# failures_last COMMAND...: what go test -v says about failed assertions comes once more at the end, since the logs of all
# processes follow it where it happens.
failures_last() {
  local log status=0
  log="$(mktemp)"
  "$@" | tee "$log" || status=$?
  if ((status != 0)); then
    printf '\n--- failed assertions\n'
    grep -A 15 -e 'Error Trace:' -e '^panic:' "$log" | cut -c 1-500 | head -n 200 || true
  fi
  rm -f "$log"
  return "$status"
}

e2e() {
  local list
  mapfile -t list < <(existing test/e2e)
  if ((${#list[@]} == 0)); then
    echo "no end-to-end tests" >&2
    return 1
  fi
  step "end-to-end tests: scheduler, controller and a cluster of KWOK nodes" failures_last "$GO" test -count=1 -p 1 -v -timeout 25m "${list[@]}"
}

# The order of faults and jobs is always the same here, and one with all kinds of them: the leader is paused for longer than
# its lease, and everything is killed. `make chaos` runs longer, with any seed.
chaos() {
  step "build what kills and pauses" "$GO" build -trimpath -buildvcs=false -o bin/jobqueue-chaos ./test/chaos
  step "chaos: processes killed and paused under load" bin/jobqueue-chaos --duration=50s --seed=916
}

case "${1:-all}" in
unit) unit ;;
properties) properties ;;
fuzz) fuzz ;;
differential) differential ;;
race) race ;;
sim) simulate ;;
integration) binaries && integration ;;
e2e) binaries && e2e ;;
chaos) binaries && chaos ;;
all)
  unit
  properties
  fuzz
  differential
  race
  simulate
  binaries
  integration
  e2e
  chaos
  ;;
*)
  sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
  ;;
esac
summary
