/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package docs_test runs the commands of the documentation on the playground, as a reader would.
package docs_test

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// elsewhere are commands that are not run here, by the reason.
var elsewhere = commandsBy(map[string]string{
	"CI runs it, or what it starts": `
make demo
make test
make chart`,
	"this test has started it": `
make playground ARGS=--dir=_artifacts/playground`,
	"the directory is another one here; the playground prints the same line": `
export KUBECONFIG=$PWD/_artifacts/playground/kubeconfig/admin.yaml PATH=$PWD/bin:$PATH`,
	"test images pushes to a registry of its own": `
make images PREFIX=registry.example.com/queue TAG=v1 PUSH=1`,
	"the playground has built it": `
go install ./cmd/kubectl-jobqueue
go install ./cmd/jobqueue-migrate`,
	"the playground has no stand-alone Koord-Queue": `
kubectl -n koord-queue scale deployment koord-queue-controller job-extensions --replicas=0
kubectl -n NAMESPACE delete secret -l owner=helm,name=RELEASE`,
	"a test of test/e2e removes all": `
kubectl delete -k manifests/overlays/default --selector='!jobqueue.koordinator.sh/keep'`,
	"Widget is the reader's own kind; the tests of internal/cli/kinds have one": `
kubectl get widget w -o yaml | kubectl jobqueue kinds test -f - --managed-jobs=kinds.yaml
kubectl jobqueue kinds rights Widget --managed-jobs=kinds.yaml | kubectl apply -f -
kubectl jobqueue kinds policy Widget --managed-jobs=kinds.yaml | kubectl apply -f -
kubectl jobqueue kinds policy KIND --managed-jobs=FILE`,
	"the file is the reader's own; the tests of internal/cli/submission and test/e2e submit some": `
kubectl jobqueue submit -f train.yaml --quota research --wait --timeout=1h`,
	"its exit code says what the playground lacks; internal/cli/doctor tests it": `
kubectl jobqueue doctor`,
	"it builds images and chart, or needs a release": `
make release VERSION=v0.3.0 KEY=minisign.key
minisign -V -p minisign.pub -m SHA256SUMS
sha256sum -c SHA256SUMS
go version -m kubectl-jobqueue`,
	"the objects exist in the playground": `
kubectl create -f _artifacts/queues.yaml`,
	"needs the Prometheus operator; test/alerts evaluates the rules": `
kubectl apply -k manifests/components/monitoring`,
	"nodes of the playground run no containers": `
kubectl -n koord-queue port-forward deployment/jobqueue-controller 8443 &
curl -sk -H "Authorization: Bearer $(kubectl -n monitoring create token prometheus)" https://localhost:8443/metrics
kubectl -n koordinator-system debug POD --image=busybox --target=scheduler --profile=general -- kill -USR1 1`,
})

// commandsBy has the reason of each command.
func commandsBy(reasons map[string]string) map[string]string {
	all := map[string]string{}
	for reason, text := range reasons {
		for command := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			all[command] = reason
		}
	}
	return all
}

// shows is what a page says that a command shows.
var shows = map[string]string{
	"kubectl jobqueue list -n research":         "QuotaExceeded",
	"kubectl jobqueue top -A":                   "team-research",
	"kubectl jobqueue why train":                "Who must end",
	"kubectl jobqueue why train -o wide":        "Too little quota",
	"kubectl jobqueue why lost":                 "OtherScheduler",
	"kubectl jobqueue why borrower -n research": "Reclaimed",
	"kubectl jobqueue why more -n research":     "nvidia.com/gpu",
	"kubectl jobqueue top -A --resource=cpu":    "free on nodes that take no pods",
	"kubectl jobqueue history train -n red":     "Enqueued",

	"kubectl jobqueue simulate --generate lublin --jobs 3000":                                      "easy-exact   16,507",
	"kubectl jobqueue simulate --live --capacity cpu=-64 --job big,queue=research,cpu=16,limit=2h": "what-if/big",

	"kubectl jobqueue history --queue shared --since 24h -A":                              "job/train",
	`kubectl get --raw "$API/namespaces/red/records?limit=10&fieldSelector=queue=shared"`: `"job":"train"`,
}

// here are the names of the playground for names that pages use.
var here = strings.NewReplacer(
	"namespace NAMESPACE", "namespace koordinator-system",
	"queueunit NAME", "queueunit train",
	"namespace NAME", "namespace research",
	"queues/shared/waitingunits", "queues/team-research/waitingunits",
	"namespaces/red/units/second", "namespaces/research/units/train",
	"train -n red", "train -n research",
	"--queue shared", "--queue team-research",
	"namespaces/red/records", "namespaces/research/records",
	"queue=shared", "queue=team-research",
	"queue=research", "queue=team-research",
	"--hold research", "--hold team-research",
	"state.yaml", "_artifacts/state.yaml",
	"state.facts.json", "_artifacts/state.facts.json",
)

// pages in the order in which they are run; those of the quick start and the README bring their own jobs.
func pages(t *testing.T) []string {
	list := []string{"docs/quickstart.md", "README.md"}
	for _, dir := range []string{"docs/users", "docs/operators"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		require.NoError(t, err)
		for _, path := range found {
			list = append(list, filepath.Join(dir, filepath.Base(path)))
		}
	}
	const removal = "docs/operators/upgrade.md" // the last one
	return append(slices.DeleteFunc(list, func(page string) bool { return page == removal }), removal)
}

var (
	fence   = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")
	indents = regexp.MustCompile(`(?m)^ {4,}(kubectl|make|helm|go|git|docker) `)
)

// commands are the lines of the sh blocks of a page; a line that ends in \ goes on.
func commands(page string) []string {
	var all []string
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(block[2], "\\\n", "")
		for line := range strings.Lines(text) {
			if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "#") {
				all = append(all, line)
			}
		}
	}
	return all
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	return string(text)
}

// TestEveryCommandIsInABlock: a command that is indented only is not found by the other test.
func TestEveryCommandIsInABlock(t *testing.T) {
	unused := maps.Clone(elsewhere)
	maps.Copy(unused, shows)
	for _, page := range pages(t) {
		text := read(t, page)
		require.Empty(t, indents.FindString(fence.ReplaceAllString(text, "")), page)
		for _, command := range commands(text) {
			delete(unused, command)
		}
	}
	require.Empty(t, unused, "no page has these commands")
}

var programs = regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```$")

// TestProgramsOfTheDocumentation builds each in a module of its own, and gives it a RayJob to label.
func TestProgramsOfTheDocumentation(t *testing.T) {
	library, err := filepath.Abs(filepath.Join(root, "pkg/submit"))
	require.NoError(t, err)
	job, err := os.ReadFile(filepath.Join(library, "testdata/jobs/rayjob.yaml"))
	require.NoError(t, err)
	built := 0
	for _, page := range pages(t) {
		for _, program := range programs.FindAllStringSubmatch(read(t, page), -1) {
			const name = "github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
			dir := t.TempDir()
			for file, text := range map[string]string{
				"main.go": program[1],
				"go.mod": "module example.com/reader\n\ngo 1.25.0\n\nrequire " + name + " v0.0.0\n\nreplace " + name + " => " +
					library + "\n",
			} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
			}
			run := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
			run.Dir, run.Stdin = dir, strings.NewReader(string(job))
			run.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s: %s", page, out)
			require.Contains(t, string(out), "quota.scheduling.koordinator.sh/name: research-ray", page)
			built++
		}
	}
	require.NotZero(t, built)
}

// settled waits until each running job is in a queue and has a state or a reason, as a reader would before the next
// command.
const settled = `
settled() {
  local jobs="" judged live='{{range .items}}{{if not .status.completionTime}}{{println}}{{end}}{{end}}'
  until [[ -n "$jobs" && "$jobs" == "$judged" ]]; do
    sleep 0.2
    jobs="$(kubectl get jobs -n research -o go-template="$live" | wc -l)"
    judged="$(kubectl jobqueue list -n research 2>/dev/null |
      grep -Ec 'Admitted|Running|QuotaExceeded|HeldByOthers|OtherScheduler' || true)"
  done
}
`

// again has a command succeed within 20 attempts.
const again = `
again() {
  for _ in {1..20}; do
    if "$@"; then return; fi
    sleep 0.5
  done
  return 1
}
`

// waiting has a job that runs and one that waits for it, and the jobs' namespace in the kubeconfig.
const waiting = `
kubectl config set-context --current --namespace=research
kubectl delete jobs --all --wait
kubectl wait pods --all --for=delete --timeout=1m || true # there may be none
kubectl create -f examples/quickstart/fill.yaml
settled
kubectl create -f examples/quickstart/train.yaml
settled
`

// TestQuickStart runs the page on the playground, and then what the pages say of kustomize, by which that is installed.
func TestQuickStart(t *testing.T) {
	environment := playground(t)
	runPage(t, "docs/quickstart.md", environment, "", func(string) bool { return true })
	for _, page := range pages(t) {
		if page != "docs/quickstart.md" {
			runPage(t, page, environment, waiting, byKustomize)
		}
	}
}

func byKustomize(command string) bool { return strings.Contains(command, " -k ") }

// koordinated is a cluster with Koordinator as its chart installs it.
const koordinated = `
set -euo pipefail
helm repo add koordinator-sh "$KOORDINATOR"
helm install koordinator koordinator-sh/koordinator --version 1.8.0 --namespace koordinator-system --create-namespace
`

// installed has the quotas and queues that the pages name, once README's commands have installed the queue. Nobody
// reads as fast as this runs: kube-apiserver takes some seconds to find the aggregated API.
const installed = `
kubectl create -f cmd/jobqueue-playground/scenario.yaml -f examples/gpus/nodes.yaml -f examples/gpus/quota.yaml
` + waiting + `
kubectl wait apiservice v1alpha1.visibility.koord-queue.x-k8s.io --for=condition=Available --timeout=1m
`

// TestCommandsOfTheDocumentation follows README, as somebody who has Koordinator, and then all other pages. The last
// one removes everything.
func TestCommandsOfTheDocumentation(t *testing.T) {
	environment := playground(t, "--bare")
	helm, err := filepath.Abs(filepath.Join(root, "bin", "helm"))
	require.NoError(t, err)
	for _, kind := range []string{"CACHE", "CONFIG", "DATA"} {
		environment = append(environment, "HELM_"+kind+"_HOME="+t.TempDir())
	}
	environment = append(environment, "KOORDINATOR="+koordinatorChart(t, helm))
	run(t, koordinated, environment)
	for _, page := range pages(t) {
		if page != "docs/quickstart.md" {
			runPage(t, page, environment, waiting, func(command string) bool { return !byKustomize(command) })
		}
		if page == "README.md" {
			t.Run("an upgrade of Koordinator", func(t *testing.T) {
				run(t, "set -euo pipefail\n"+settled+waiting+"set -x\n"+upgraded, environment)
			})
		}
	}
}

// upgraded is what docs/operators/install.md says of an upgrade of Koordinator's chart.
const upgraded = `
upgrade() { helm upgrade koordinator koordinator-sh/koordinator --version 1.8.0 --namespace koordinator-system "$@"; }
replicas() { kubectl -n koordinator-system get deployment koord-scheduler -o jsonpath='{.spec.replicas}'; }
plain() {
  kubectl run "$1" --image=registry.example.com/train:v1 --overrides='{"spec": {"schedulerName": "koord-scheduler"}}'
  kubectl wait pod "$1" --for=condition=PodScheduled --timeout=1m
}

: Without a flag, and with --reuse-values, Koordinator keeps its scheduler stopped.
upgrade
[[ "$(replicas)" == 0 ]]
upgrade --reuse-values --set some=value
[[ "$(replicas)" == 0 ]]

: With a value alone its scheduler runs again. It waits for the Lease, so jobs go on.
upgrade --set some=value
[[ "$(replicas)" == 2 ]]
(kubectl jobqueue doctor || true) | tee /dev/stderr | grep -F StockSchedulerRuns > /dev/null
kubectl delete job fill --wait
kubectl wait pods -l batch.kubernetes.io/job-name=train --for=create --timeout=1m
kubectl wait pods -l batch.kubernetes.io/job-name=train --for=condition=PodScheduled --timeout=1m

: It schedules while the one with the queue is away. Suspended jobs wait.
kubectl -n koordinator-system scale deployment koord-jobqueue-scheduler --replicas=0
kubectl create -f examples/quickstart/fill.yaml
plain meanwhile
[[ "$(kubectl get job fill -o jsonpath='{.spec.suspend}')" == true ]]

: The value is set again, and the queue goes on.
kubectl -n koordinator-system scale deployment koord-jobqueue-scheduler --replicas=2
upgrade --reuse-values --set scheduler.replicas=0
plain later
settled
kubectl delete pod meanwhile later
`

// runPage runs the commands of a page that are not run elsewhere, in order, after those of before.
func runPage(t *testing.T, page string, environment []string, before string, wanted func(command string) bool) {
	lines := slices.DeleteFunc(commands(read(t, page)), func(command string) bool {
		_, skip := elsewhere[command]
		return skip || !wanted(command)
	})
	if len(lines) == 0 {
		return
	}
	t.Run(page, func(t *testing.T) {
		script := "set -euo pipefail\n" + settled + again
		if page != "README.md" {
			script += before
		}
		script += "set -x\n"
		for _, command := range lines {
			shown := shows[command]
			if strings.Contains(command, `"$API/audits`) { // a scheduler that does not lead may answer
				script += "attempt() {\n" + command + "\n}\nagain attempt\n"
				continue
			}
			script += here.Replace(command)
			if shown != "" {
				script += " | tee /dev/stderr | grep -F -- '" + shown + "' > /dev/null"
			}
			script += "\n"
			if page == "README.md" && strings.HasPrefix(command, "helm upgrade koordinator ") {
				script += installed
			}
			if strings.HasPrefix(command, "kubectl create -f") {
				script += "{ settled; } 2>/dev/null\n"
			}
		}
		run(t, script, environment)
	})
}

func run(t *testing.T, script string, environment []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = root, environment
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}

// playground starts the playground, waits until it says that it is ready, and returns the environment that it prints.
// At the end it is interrupted, and must end well.
func playground(t *testing.T, flags ...string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "_artifacts"), 0o755)) // make chart makes it for a reader
	program, err := filepath.Abs(filepath.Join(root, "bin", "jobqueue-playground"))
	require.NoError(t, err)
	cmd := exec.Command(program, append([]string{"playground", "--no-color", "--nodes=10",
		"--dir=" + filepath.Join(t.TempDir(), "playground")}, flags...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.NoError(t, cmd.Wait())
	})
	environment := os.Environ()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Println(lines.Text())
		if exported, ok := strings.CutPrefix(lines.Text(), "export "); ok {
			for _, variable := range strings.Fields(exported) {
				environment = append(environment, os.ExpandEnv(variable))
			}
		}
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			go func() {
				for lines.Scan() {
				}
			}()
			return slices.Clip(environment)
		}
	}
	require.Fail(t, "the playground ended")
	return nil
}
