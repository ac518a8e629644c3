# koord-jobqueue. `make help` lists the targets; every target documents itself with a trailing `##`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin
# Static binaries; the race detector targets turn cgo on again.
export CGO_ENABLED ?= 0

##@ Try it

# Flags of the demo go into ARGS, for example: make demo ARGS='--jobs=100 --no-color', ARGS=--kinds for eleven kinds of
# jobs with their operators, ARGS=--scenario=checks for admission checks and time-outs, ARGS=--scenario=reclaim for a min
# that is taken back, or ARGS=--scenario=strict for nodes that are fragmented.
ARGS ?=

.PHONY: demo
demo: launcher ## Start a real control plane, run 300 jobs through three queues, check every promise while it runs
	@exec $(BIN)/jobqueue-playground demo $(ARGS)

.PHONY: playground
playground: launcher ## Start the same control plane and leave it running to try things on
	@exec $(BIN)/jobqueue-playground playground $(ARGS)

##@ Build

.PHONY: build
build: launcher ## Build all binaries into bin/, with progress
	@exec $(BIN)/jobqueue-playground build $(ARGS)

# The launcher builds everything else. It is run from bin/ and not by `go run`, so that signals reach it.
# Its own first build takes a minute; until then the shell says that it is at work.
.PHONY: launcher
launcher:
	@$(GO) build -buildvcs=false -ldflags='-s -w' -o $(BIN)/jobqueue-playground ./cmd/jobqueue-playground & \
	build=$$!; trap 'kill $$build 2>/dev/null || true' INT TERM; \
	for ((s = 0; ; s++)); do \
		kill -0 $$build 2>/dev/null || break; \
		if ((s > 0 && s % 25 == 0)); then echo "building the launcher: $$((s / 5))s"; fi; \
		sleep 0.2; \
	done; \
	wait $$build

.PHONY: clean
clean: ## Remove built binaries and the work directories of demo and tests
	@rm -rf $(BIN) _artifacts

##@ Test

.PHONY: test
test: ## Say whether it works; the long tests are shortened or left to test-all
	@hack/test.sh

.PHONY: test-all
test-all: ## Run everything at length, an hour and a half: 10,000 plans and failovers, all mutants, all end-to-end tests, 10 minutes of chaos, 5 of a hostile tenant, twice
	@hack/test.sh all

.PHONY: test-unit
test-unit: ## Run unit tests, stories and properties; no control plane
	@hack/test.sh unit

.PHONY: test-differential
test-differential: ## Compare 10,000 random histories with ElasticQuota itself; HISTORIES=n for another number
	@hack/test.sh differential

.PHONY: test-properties
test-properties: ## Check every property of the core 100,000 times
	@hack/test.sh properties

.PHONY: test-fuzz
test-fuzz: ## Fuzz every target with FUZZ_TIME inputs, 3000x if not set, or for a time such as 30s
	@hack/test.sh fuzz

.PHONY: mutants
mutants: ## Plant every bug of test/mutants in turn; the tests must notice each. ARGS names some
	@$(GO) run ./test/cmd/mutants $(ARGS)

.PHONY: test-race
test-race: ## Run core, engine, controller, jobs and what else has goroutines under the race detector
	@hack/test.sh race

# Plans to run; each is made from a seed, and a plan that fails prints its seed.
SEEDS ?= 500

.PHONY: sim
sim: ## Run SEEDS plans of the simulator, and its corpus with every write made to fail; prints one line of JSON
	@$(GO) run ./test/cmd/sim -seeds $(SEEDS) -crashes $(ARGS)

.PHONY: test-integration
test-integration: ## Run the tests against a real API server and etcd
	@hack/test.sh integration

.PHONY: test-e2e
test-e2e: ## Run all tests against scheduler, controller and a cluster of KWOK nodes
	@hack/test.sh e2e

.PHONY: test-operators
test-operators: ## Run jobs of other kinds with real operators, or a stand-in, through queues; compiles some minutes once; last line is JSON
	@hack/test.sh operators && status=0 || status=$$?; cat _artifacts/operators.json; exit $$status

.PHONY: test-web
test-web: ## Look at the page in a headless Chromium: accessibility, keyboard, sizes, live update, persons, 100,000 units
	@hack/test.sh web

# Where pictures of all pages go.
PICTURES ?= _artifacts/pictures

.PHONY: pictures
pictures: ## Write pictures of the page into PICTURES, and those of the documentation into docs/images
	@mkdir -p $(PICTURES) && JOBQUEUE_PICTURES=$(abspath $(PICTURES)) $(GO) test -count=1 -run 'Pictures$$' ./test/web

.PHONY: bench
bench: ## Run the benchmarks of core, engine and quota; ARGS go to go test
	@hack/bench.sh $(ARGS)

# A workload of test/cmd/perf or a file of that form, or something else to measure (an unknown SCENARIO names those there
# are), and where the figures go; other flags go into ARGS (-h shows them).
WORKLOAD ?= baseline
SCENARIO ?=
OUT ?=

.PHONY: perf
perf: launcher ## Admit WORKLOAD through a real API server, or run a SCENARIO, and measure it: table, and JSON in OUT
	@$(BIN)/jobqueue-playground build
	@$(GO) build -buildvcs=false -ldflags='-s -w' -o $(BIN)/jobqueue-perf ./test/cmd/perf
	@exec $(BIN)/jobqueue-perf $(or $(SCENARIO),--workload=$(WORKLOAD)) $(if $(OUT),--out=$(OUT)) $(ARGS)

.PHONY: benchmarks
benchmarks: launcher ## Run all measurements of docs/benchmarks.md, and write its tables; ARGS=--only=NAMES runs some
	@$(BIN)/jobqueue-playground build
	@$(GO) build -buildvcs=false -ldflags='-s -w' -o $(BIN)/jobqueue-perf ./test/cmd/perf
	@$(GO) run ./test/cmd/benchmarks $(ARGS)

# How long it goes on, and the seed of what happens; other flags go into ARGS (-h shows them).
DURATION ?= 10m
SEED ?= 1

.PHONY: chaos
chaos: launcher ## Kill and pause real processes for DURATION in the order of SEED, then check that nothing was lost or passed
	@$(BIN)/jobqueue-playground build
	@$(GO) build -buildvcs=false -ldflags='-s -w' -o $(BIN)/jobqueue-chaos ./test/cmd/chaos
	@exec $(BIN)/jobqueue-chaos --duration=$(DURATION) --seed=$(SEED) $(ARGS)

.PHONY: hostile
hostile: launcher ## Have a tenant make the worst objects for DURATION, twice, and measure what others notice; last line is JSON
	@$(BIN)/jobqueue-playground build
	@$(GO) build -buildvcs=false -ldflags='-s -w' -o $(BIN)/jobqueue-hostile ./test/cmd/hostile
	@exec $(BIN)/jobqueue-hostile --duration=$(DURATION) --seed=$(SEED) $(ARGS)

##@ Check

.PHONY: lint
lint: ## Run golangci-lint, built from its module: import rules and purity included
	@hack/lint.sh $(ARGS)

.PHONY: vet
vet: ## Run go vet
	@$(GO) vet ./...

.PHONY: generate
generate: ## Write deep copies, CRDs, the copy of the scheduler configuration and the tables in docs/
	@hack/generate.sh

.PHONY: verify
verify: ## Fail when something generated is stale, or layout, imports or licence headers are not in order
	@hack/verify-generated.sh
	@$(GO) test -count=1 ./test/layout/... ./manifests/...

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what the programs call; asks a database over the network
	@hack/test.sh vuln

.PHONY: ci
ci: ## Run everything that must hold before a change goes in
	@.ci/run

##@ Images and chart

.PHONY: images
images: ## Build both container images without Docker; PREFIX=registry/path names them in manifests, PUSH=1 pushes
	@hack/images.sh

.PHONY: chart
chart: ## Render the Helm chart into _artifacts/chart, lint it, and compare it with kustomize; VERSION=v1.2.3 names it
	@hack/chart.sh

.PHONY: release
release: ## Write a release to _artifacts/release/VERSION: images, chart, kubectl plugin, notes and checksums
	@hack/release.sh

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make \033[36m<target>\033[0m\n"} \
		/^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
		/^[a-zA-Z0-9_.-]+:.*?##/ { printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
