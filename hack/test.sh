#!/usr/bin/env bash
# Runs tests, in sections that say how long they took:
#
#   hack/test.sh               whether it works: what a newcomer runs (docs/testing.md says what it takes)
#   hack/test.sh all           everything, at length: an hour and a half
#   hack/test.sh SECTION...    some of these:
#
#   unit           unit tests, stories, and properties 100 times each; no control plane
#   properties     every property of the core PROPERTY_CHECKS times (100,000), with short histories
#   fuzz           every fuzz target with FUZZ_TIME inputs (3000x)
#   differential   HISTORIES random histories (10,000), compared with ElasticQuota itself
#   race           the packages with goroutines, and the core, under the race detector
#   sim            the plans that once failed, SEEDS others (500), and every write of the simulator's corpus made to fail
#   sim-itself     the simulator's own tests: each of its checks can fail, and a seed always says the same
#   failovers      plans of the simulator until FAILOVERS leaders have changed (10,000)
#   mutants        every bug of test/mutants planted in turn: the tests must notice it
#   vuln           known vulnerabilities in what the programs call, if their database (GOVULNDB for a mirror) can be reached
#   integration    against a real API server and etcd
#   e2e            against the control plane of the demo, scheduler and controller included
#   e2e-essential  those of e2e that say whether it works, see below
#   e2e-rest       the others; e2e-rest-1 and e2e-rest-2 are half of them each
#   operators      jobs of real operators: training-operator, Kubeflow's trainer, JobSet and KubeRay, which compile for minutes once
#   chaos          the same with its processes killed and paused under load, for CHAOS_DURATION (50s) and until all is done
#   docs           every command of README, quick start, users and operators: by kustomize on the playground, and by helm on a
#                  cluster with Koordinator
#   images         the container images: built, unpacked, and run in place of Koordinator's own scheduler
#   release        a release for linux/amd64: made, its checksums and signature verified, its plugin run, its chart rendered
#   chart          the Helm chart: rendered, linted, compared with kustomize, installed over the release before, and removed
#   web            the page in a headless Chromium of the distribution, which is installed if there is none: accessibility, keyboard,
#                  sizes, dark, live update, three persons, 100,000 units
#   hostile        the same attacked by one tenant while another works, twice for HOSTILE_DURATION (60s)
#
# Without arguments, and with all, the sections have other sizes than when they are called by name; a variable that is set
# goes before both. Tests whose inputs have not changed since they were ok are not run again, except with FORCE=1.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ -n "${FORCE:-}" ]]; then
  export GOFLAGS="${GOFLAGS:-} -count=1"
fi

# Packages under the race detector: everything with goroutines of its own that does not link the scheduler.
RACE=(pkg/core internal/engine internal/controller internal/jobs internal/process)

# seed PATH...: where random histories begin. It changes with the files that they test, and with nothing else.
seed() {
  local hash
  hash="$(tree go.sum "$@" 2>/dev/null)" || hash=00000001
  echo "${SEED:-$((16#${hash:0:8}))}"
}

unit() {
  local list
  list="$(unit_packages)" || return
  # shellcheck disable=SC2086 # one pattern per word
  step "unit tests, stories and properties" "$GO" test -vet=off -short -timeout 15m $list
  step "the library for submitters, a module of its own" "$GO" test -C pkg/submit -vet=off -short ./...
  step "alerts and dashboard, evaluated with Prometheus' own packages" "$GO" test -C test/alerts -vet=off ./...
  step "a module of somebody else, which imports what others may" "$GO" test -C test/consumer -vet=off ./...
}

# Random histories that ElasticQuota and the queue are compared over; the unit tests run a hundred of them.
differential() {
  step "differential test: ${HISTORIES:=10000} histories against ElasticQuota" \
    env RAPID_CHECKS="$HISTORIES" RAPID_SEED="$(seed pkg/core internal/quota)" \
    "$GO" test -vet=off -timeout 15m ./internal/quota -run '^TestDifferential$'
}

# PROPERTY_CHECKS of every property. From 10,000 on each history is short (test/harness/effort).
properties() {
  local packages
  packages="$(grep -rl --include='*_test.go' pgregory.net/rapid pkg/core | xargs -n1 dirname | sort -u | sed 's,^,./,')"
  # shellcheck disable=SC2086 # one word for each package
  step "properties of the core, ${PROPERTY_CHECKS:=100000} checks each" \
    env RAPID_CHECKS="$PROPERTY_CHECKS" RAPID_SEED="$(seed pkg/core)" RAPID_NOFAILFILE=true \
    "$GO" test -vet=off -timeout 120m $packages
}

# FUZZ_TIME of every target: a number of inputs, since the fuzzer may call it a failure when time ends while it works on one.
# What is found is written to testdata/fuzz of the package: commit it with the repair.
# Packages that link the scheduler have no fuzz targets: the fuzzer compiles all that a test links anew.
fuzz() {
  local package target
  while IFS=: read -r package target; do
    step "fuzz $target" "$GO" test -C "$package" . -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ_TIME:-3000x}" -fuzzminimizetime 20x -parallel 2
  done < <(grep -rho --include='*_test.go' -e '^func Fuzz[A-Za-z0-9]*' internal pkg --with-filename | sed -E 's#/[^/]*:func #:#' | sort)
}

race() {
  local list
  mapfile -t list < <(existing "${RACE[@]}")
  step "race detector: ${RACE[*]}" env CGO_ENABLED=1 "$GO" test -race -short -timeout 15m "${list[@]}"
}

# simulated: the directories of what the simulator is built from, and of its plans.
simulated() { "$GO" list -deps -f '{{.Dir}}' ./test/cmd/sim | grep "^$ROOT/"; }

simulate() {
  local crashes="every write" INPUTS
  if ((${CRASHES_OF:=1} > 1)); then
    crashes="one of $CRASHES_OF writes"
  fi
  step "simulator: plans that once failed" "$GO" test -vet=off ./test/sim -run '^TestKeptPlans$'
  mapfile -t INPUTS < <(simulated)
  step_if_changed "simulator: ${SEEDS:=500} plans, and $crashes of the corpus made to fail" \
    "$GO" run ./test/cmd/sim -seed "$(seed "${INPUTS[@]}")" -seeds "$SEEDS" -crashes -crashes-of "$CRASHES_OF"
}

sim_itself() { step "tests of the simulator itself" "$GO" test -vet=off -timeout 15m ./test/sim; }

failovers() {
  local INPUTS
  mapfile -t INPUTS < <(simulated)
  step_if_changed "simulator: until ${FAILOVERS:=10000} leaders have changed" \
    "$GO" run ./test/cmd/sim -until-failovers "$FAILOVERS"
}

mutants() {
  local INPUTS=(.)
  step_if_changed "mutants: planted bugs that the tests must notice" "$GO" run ./test/cmd/mutants
}

# A package that imports next to nothing is looked at first: it tells whether the database can be reached.
vuln() {
  local check=("$GO" run "golang.org/x/vuln/cmd/govulncheck@${GOVULNCHECK_VERSION:-v1.9.0}" ${GOVULNDB:+-db="$GOVULNDB"}) answer
  if ! answer="$("${check[@]}" ./pkg/core/ordered 2>&1)" && [[ "$answer" == *"fetching vulnerabilities"* ]]; then
    STEPS+=("left out: the database of known vulnerabilities cannot be reached")
    return
  fi
  step "known vulnerabilities" "${check[@]}" ./cmd/koord-scheduler ./cmd/jobqueue-controller ./cmd/jobqueue-web
}

# chromium says whether there is a browser; as root it installs that of the distribution. type -P finds programs only: this
# function has the name of one.
chromium() {
  local name
  for name in chromium-headless-shell chromium; do
    if type -P "$name" >/dev/null; then
      return
    fi
  done
  if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
    return 1
  fi
  apt-get update -qq || return
  for name in chromium-headless-shell chromium; do
    if apt-get install -y -qq --no-install-recommends "$name" fonts-dejavu-core; then
      return
    fi
  done
  return 1
}

web() {
  if ! chromium; then
    STEPS+=("left out: no Chromium, and that of the distribution cannot be installed here")
    return
  fi
  step "the page in a browser" \
    failures_last env JOBQUEUE_BROWSER=required "$GO" test -vet=off -count=1 -v -timeout 15m ./test/web
}

# What the tests below start; a second call rebuilds nothing.
binaries() {
  step "build what the tests start" "$GO" run ./cmd/jobqueue-playground build
}

integration() {
  step "integration tests: a real API server and etcd" \
    "$GO" test -vet=off -count=1 -p 1 -timeout 15m ./test/harness/controlplane/... ./test/integration/...
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

# The end-to-end tests that say whether it works. Each fails if a part of the chain from a job to its pods is broken, and all
# but the last three share one cluster. The others look closer at one thing (rare input, an estimate that is off, trees, a tree
# of quotas), take long (changes of quota under load, 10,000 units), or break processes one by one, which chaos does all at
# once.
ESSENTIAL=(
  TestPolicies                                  # who goes first, and who waits
  TestQueueSharedByTwoQuotas                    # one queue, two limits
  TestGangIsAdmittedAsOne                       # all pods of a job or none
  TestQuotaComesFromLabelNamespaceOrDefault     # how a job finds its quota
  TestElasticQuotaRefusesNoPodOfAnAdmittedJob   # the reason to have a queue
  TestUnsuspendedJobsAreGated                   # no job gets past it
  TestHandResumedJobStaysGated                  # not by hand either
  TestFailedJobGivesItsQuotaBack                # the way back
  TestWakeUps                                   # what is free is given away
  TestBadInputIsParkedAndStopsNobody            # what one tenant writes stops no other
  TestSchedulerSaysWhatIsMissing                # an installation that lacks something says so
  TestTheReleaseBeforeCanReadWhichJobsAreManaged # it goes on beside processes of the release before
)

# end_to_end TITLE FLAG...: go test on test/e2e with the flags.
end_to_end() {
  local title="$1"
  shift
  step "end-to-end tests, $title: scheduler, controller and a cluster of KWOK nodes" \
    failures_last "$GO" test -vet=off -count=1 -p 1 -v -timeout 25m ./test/e2e "$@"
}

# A name that no test has would be left out without a word.
essential() {
  local name pattern
  for name in "${ESSENTIAL[@]}"; do
    if ! grep -q "^func $name(" test/e2e/*_test.go; then
      echo "no end-to-end test has the name $name" >&2
      return 1
    fi
  done
  pattern="$(IFS='|' && echo "${ESSENTIAL[*]}")"
  echo "^($pattern)\$"
}

e2e() { end_to_end "all"; }

e2e_essential() {
  local pattern
  pattern="$(essential)" || return
  end_to_end "the essential ones" -run "$pattern"
}

# rest_of TITLE [FLAG...]: those that are not essential.
rest_of() {
  local title="$1" pattern
  shift
  pattern="$(essential)" || return
  end_to_end "$title" -skip "$pattern" "$@"
}

e2e_rest() { rest_of "the others"; }
e2e_rest_1() { rest_of "the others, A to M" -run '^Test[A-M]'; }
e2e_rest_2() { rest_of "the others, N to Z" -run '^Test[^A-M]'; }

docs() {
  step "build the playground" "$GO" build -buildvcs=false -ldflags='-s -w' -o bin/jobqueue-playground ./cmd/jobqueue-playground
  step "build kubectl and its plugin" bin/jobqueue-playground build --kubectl
  step "build Koordinator's scheduler" "$GO" build -ldflags='-s -w' -o bin/stock-scheduler \
    github.com/koordinator-sh/koordinator/cmd/koord-scheduler
  step "Helm" env PINNED=1 hack/helm.sh
  step "render the chart" "$GO" run ./hack/chart -out _artifacts/chart/koord-jobqueue -version v0.0.0-dev
  step "commands of the documentation" failures_last "$GO" test -vet=off -count=1 -v -timeout 15m ./test/docs
}

# The scheduler of Koordinator itself is replaced by that of the image in a cluster where jobs run.
images() {
  local directory="$ROOT/_artifacts/images" programs
  step "image builder" "$GO" test -C hack/tools/images -vet=off ./...
  step "container images" hack/images.sh
  programs="$(mktemp -d)"
  step "unpack images" bin/jobqueue-images -out "$directory" -unpack "$programs"
  step "build Koordinator's scheduler" "$GO" build -ldflags='-s -w' -o "$programs/stock-scheduler" \
    github.com/koordinator-sh/koordinator/cmd/koord-scheduler
  cp bin/jobqueue-controlplane bin/kwok "$programs"
  JOBQUEUE_IMAGE_BIN="$programs" JOBQUEUE_STOCK_SCHEDULER="$programs/stock-scheduler" \
    end_to_end "the images" -run '^TestInstallIntoALivingClusterAndTakeOutAgain$'
  rm -rf "$programs"
}

# helm installs where kustomize does in the same tests elsewhere.
chart() {
  step "Helm chart" env PINNED=1 hack/chart.sh
  JOBQUEUE_HELM="$ROOT/bin/helm" JOBQUEUE_CHART="$ROOT/_artifacts/chart/koord-jobqueue" \
    end_to_end "the chart" -run '^(TestUpgrade|TestInstallIntoALivingClusterAndTakeOutAgain)$'
}

# What make release writes, as its users check it.
release() {
  local dir version=v0.0.1
  dir="$(mktemp -d)"
  printf '## %s\n\n- A release that is made to be looked at.\n' "$version" >"$dir/CHANGES.md"
  step "build minisign" "$GO" build -C hack/tools/minisign -o "$ROOT/bin/minisign" aead.dev/minisign/cmd/minisign
  step "make a key" bin/minisign -G -W -f -p "$dir/key.pub" -s "$dir/key"
  step "make release" env VERSION="$version" PLATFORMS=linux/amd64 OUT="$dir/out" CHANGES="$dir/CHANGES.md" KEY="$dir/key" \
    hack/release.sh
  step "verify the signature" bin/minisign -V -p "$dir/key.pub" -m "$dir/out/SHA256SUMS"
  step "verify the checksums" env -C "$dir/out" sha256sum --strict --check SHA256SUMS
  step "unpack the plugin" tar xzf "$dir/out/kubectl-jobqueue_linux_amd64.tar.gz" -C "$dir"
  step "the plugin says its version" grep -q "$version" <("$dir/kubectl-jobqueue" --version)
  step "the chart names the images" grep -q "registry.example.com/queue/koord-scheduler:$version" \
    <(bin/helm template --set image.registry=registry.example.com/queue "$dir/out/koord-jobqueue-${version#v}.tgz")
  rm -rf "$dir"
}

# The operators are built by the tests themselves, which say how far they are.
operators() {
  step "jobs of other operators: training-operator, Kubeflow's trainer, JobSet, KubeRay, and a stand-in for the rest" \
    failures_last "$GO" test -count=1 -v -timeout 25m ./test/operators
  cat _artifacts/operators.json
}

# The order of faults and jobs is always the same here, and in 50 seconds one with all kinds of them: the leader is paused for
# longer than its lease, and everything is killed. `make chaos` runs for as long and with any seed.
chaos() {
  step "build what kills and pauses" "$GO" build -buildvcs=false -ldflags='-s -w' -o bin/jobqueue-chaos ./test/cmd/chaos
  step "chaos: processes killed and paused under load" bin/jobqueue-chaos --duration="${CHAOS_DURATION:-50s}" --seed=916
}

# One round in which nothing manages what the hostile tenant makes, one in which all of it is managed. `make hostile` runs
# for as long and with any seed, and asks for a ratio of 0.9. A minute is a hundred jobs or so, and on two cores with a load
# of 6 by others the same seed gave 0.85, 0.94 and 0.97: here the ratio finds what stops the victim, not what slows it by a
# tenth.
hostile() {
  step "build what attacks" "$GO" build -buildvcs=false -ldflags='-s -w' -o bin/jobqueue-hostile ./test/cmd/hostile
  step "hostile: one tenant makes the worst objects, another works" \
    bin/jobqueue-hostile --duration="${HOSTILE_DURATION:-60s}" --seed=1 --min-ratio="${HOSTILE_MIN_RATIO:-0.75}"
}

# quick says whether it works. One lane is bound by the processor, one waits for a control plane most of the time.
quick() {
  : "${PROPERTY_CHECKS:=1000}" "${HISTORIES:=200}" "${SEEDS:=100}" "${CRASHES_OF:=10}"
  lanes computing waiting
}

computing() {
  unit
  properties
  differential
  simulate
}

waiting() {
  binaries
  integration
  e2e_essential
  chaos
}

all() {
  : "${SEEDS:=10000}" "${CHAOS_DURATION:=10m}" "${HOSTILE_DURATION:=5m}" "${HOSTILE_MIN_RATIO:=0.9}"
  unit
  properties
  fuzz
  differential
  race
  simulate
  sim_itself
  failovers
  mutants
  vuln
  web
  binaries
  integration
  e2e
  operators
  docs
  images
  release
  chart
  chaos
  hostile
}

section() {
  case "$1" in
  unit | properties | fuzz | differential | race | failovers | mutants | vuln | web) "$1" ;;
  sim) simulate ;;
  sim-itself) sim_itself ;;
  integration | e2e | e2e-essential | e2e-rest | e2e-rest-[12] | operators | docs | images | release | chart | chaos | hostile) binaries && "${1//-/_}" ;;
  all) all ;;
  *)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
  esac
}

if (($# == 0)); then
  quick
fi
for name in "$@"; do
  section "$name"
done
summary
