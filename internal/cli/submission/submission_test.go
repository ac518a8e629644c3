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

package submission

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// apiServer plays the API server. It keeps what is created, and answers lists and watches as the test says.
type apiServer struct {
	t   *testing.T
	url string

	mutex sync.Mutex
	// created are the bodies of creations, and managed is the configuration; empty is forbidden.
	created []object
	managed string
	// lists and watches by resource: each request takes the first that is left. Without one a list is empty, and a watch
	// lasts.
	lists, watches map[string][]answer
}

// answer is a status other than 200, or objects: those of a list, or events in the form of a watch.
type answer struct {
	status int
	items  []object
	cut    bool
}

var resources = map[string][]object{
	"v1": {
		{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": []string{"get", "create"}},
		{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": []string{"create"}},
	},
	"batch/v1": {{"name": "jobs", "kind": "Job", "namespaced": true, "verbs": []string{"create", "list", "watch"}}},
	"apps/v1":  {{"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": []string{"create"}}},
	"kubeflow.org/v1": {
		{"name": "pytorchjobs", "kind": "PyTorchJob", "namespaced": true, "verbs": []string{"create"}},
	},
	"example.com/v1": {{"name": "trains", "kind": "Train", "namespaced": true, "verbs": []string{"create"}}},
	"scheduling.x-k8s.io/v1alpha1": {
		{"name": "queueunits", "kind": "QueueUnit", "namespaced": true, "verbs": []string{"get", "list", "watch"}},
	},
}

func newServer(t *testing.T) *apiServer {
	s := &apiServer{t: t, lists: map[string][]answer{}, watches: map[string][]answer{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.discovers(w, r) {
		return
	}
	parts := strings.Split(r.URL.Path, "/")
	name := parts[len(parts)-1]
	switch {
	case name == "koord-jobqueue-managed-jobs" && s.managed == "":
		status(w, http.StatusForbidden)
	case name == "koord-jobqueue-managed-jobs":
		send(w, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name},
			"data": object{"managedJobs": s.managed}})
	case r.Method == http.MethodPost:
		s.create(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, name)
	case name == "jobs" || name == "queueunits":
		s.list(w, name)
	default:
		status(w, http.StatusNotFound)
	}
}

func (s *apiServer) discovers(w http.ResponseWriter, r *http.Request) bool {
	switch path := r.URL.Path; path {
	case "/api":
		send(w, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case "/apis":
		groups := []object{}
		for version := range resources {
			if group, v, ok := strings.Cut(version, "/"); ok {
				one := object{"groupVersion": version, "version": v}
				groups = append(groups, object{"name": group, "versions": []object{one}, "preferredVersion": one})
			}
		}
		send(w, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	default:
		version := strings.TrimPrefix(strings.TrimPrefix(path, "/api/"), "/apis/")
		list, is := resources[version]
		if is {
			send(w, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list})
		}
		return is
	}
	return true
}

func (s *apiServer) create(w http.ResponseWriter, r *http.Request) {
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Error(err)
	}
	metadata := body["metadata"].(object)
	if prefix, ok := metadata["generateName"].(string); ok && metadata["name"] == nil {
		metadata["name"] = prefix + "x7x"
	}
	if metadata["name"] == "taken" {
		status(w, http.StatusConflict)
		return
	}
	metadata["uid"] = "ours"
	s.created = append(s.created, body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *apiServer) next(of map[string][]answer, resource string) (a answer, found bool) {
	if left := of[resource]; len(left) > 0 {
		of[resource] = left[1:]
		return left[0], true
	}
	return answer{}, false
}

func (s *apiServer) list(w http.ResponseWriter, resource string) {
	a, found := s.next(s.lists, resource)
	if !found && resource == "jobs" { // the job is there unless the test says otherwise
		a.items = []object{s.created[len(s.created)-1]}
	}
	if a.status != 0 {
		status(w, a.status)
		return
	}
	kind := map[string]string{"jobs": "JobList", "queueunits": "QueueUnitList"}[resource]
	send(w, object{"kind": kind, "metadata": object{"resourceVersion": "1"}, "items": append([]object{}, a.items...)})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	a, found := s.next(s.watches, resource)
	if a.status != 0 {
		status(w, a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for _, event := range a.items {
		_ = json.NewEncoder(w).Encode(event)
	}
	w.(http.Flusher).Flush()
	if !found || !a.cut {
		s.mutex.Unlock()
		<-r.Context().Done()
		s.mutex.Lock()
	}
}

func send(w http.ResponseWriter, body object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// cutOff is a status that ends the connection without an answer.
const cutOff = -1

func status(w http.ResponseWriter, code int) {
	if code == cutOff {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(failure(code))
}

func failure(code int) object {
	reasons := map[int]string{403: "Forbidden", 404: "NotFound", 409: "AlreadyExists", 410: "Expired"}
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reasons[code],
		"message": http.StatusText(code)}
}

// noPause is a clock whose waits are over at once.
type noPause struct{ clock.RealClock }

func (noPause) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

// run the command on a file. The code is that of its exit.
func (s *apiServer) run(text string, args ...string) (out, errs string, code int, err error) {
	s.t.Helper()
	dir := s.t.TempDir()
	kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "jobs.yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(s.t, os.WriteFile(kubeconfig, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+s.url+`"}}]
contexts: [{name: c, context: {cluster: c, namespace: team}}]
current-context: c
`), 0o600))
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	flags := genericclioptions.NewConfigFlags(true)
	command := Command(flags, streams, noPause{})
	flags.AddFlags(command.PersistentFlags())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"-f", file, "--kubeconfig=" + kubeconfig}, args...))
	err = command.ExecuteContext(s.t.Context())
	var exits interface{ ExitCode() int }
	switch {
	case errors.As(err, &exits):
		code = exits.ExitCode()
	case err != nil:
		code = 1
	}
	return stdout.String(), stderr.String(), code, err
}

const (
	quota = "quota.scheduling.koordinator.sh/name"
	queue = "koord-queue/queue-name"
)

const template = `{spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}`

const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec: {template: " + template + "}\n"

const trainKind = `
kinds:
- Job.v1.batch
- apiVersion: example.com/v1
  kind: Train
  resource: trains
  suspend: {field: .spec.paused}
  podSets:
  - {name: cars, path: .spec, count: [{field: .cars}], template: .template, later: size(self.spec) > 7}
  state: {}
  pods: {label: example.com/train}
`

// at is the value of a dotted path. A key with dots stands in brackets at the end.
func at(o object, path string) any {
	path, key, _ := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	steps := strings.Split(path, ".")
	if key != "" {
		steps = append(steps, key)
	}
	var value any = o
	for _, step := range steps {
		fields, _ := value.(object)
		value = fields[step]
	}
	return value
}

// TestWhatIsCreated compares fields of the created object, and the output.
func TestWhatIsCreated(t *testing.T) {
	const pods = "spec.template.metadata.labels"
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {" + quota + ": a}}\n" +
		"spec: {template: " + template + "}\n"
	train := "apiVersion: example.com/v1\nkind: Train\nmetadata: {name: t}\nspec: {cars: 2, template: " + template + "}\n"
	annotated := func(annotations string) string {
		return strings.Replace(job, "{name: train}", "{name: train, annotations: {"+annotations+"}}", 1)
	}
	for _, tc := range []struct {
		name, text, managed string
		args                []string
		out                 string
		want                object
	}{
		{"pods have the label as well", job, "", []string{"--quota=a"}, "jobs.batch/train submitted\n", object{
			"spec.suspend": true, "metadata.namespace": "team", "metadata.labels[" + quota + "]": "a",
			pods + "[" + quota + "]": "a", "spec.template.spec.schedulerName": "koord-scheduler",
		}},
		{"the quota of the job", deployment, "kinds: [Deployment.v1.apps]", nil, "deployments.apps/web submitted\n", object{
			pods + "[" + quota + "]": "a", "spec.suspend": nil,
		}},
		{"an annotation does not go before the flags", annotated(queue + ": mine, koord-queue/quota-names: 'b,c'"), "",
			[]string{"--quota=a", "--queue=express"}, "jobs.batch/train submitted\n", object{
				"metadata.labels[" + queue + "]": "express", "metadata.annotations[" + queue + "]": nil,
				"metadata.annotations[koord-queue/quota-names]": nil,
			}},
		{"the queue of the job", annotated(queue + ": mine"), "", []string{"--quota=a"}, "jobs.batch/train submitted\n",
			object{"metadata.labels[" + queue + "]": "mine", "metadata.labels[" + quota + "]": "a"}},
		{"several quotas", annotated("koord-queue/quota-names: 'b,c'"), "", nil, "jobs.batch/train submitted\n", object{
			"metadata.annotations[koord-queue/quota-names]": "b,c", pods + "[" + quota + "]": nil,
		}},
		{"a path", annotated("koord-queue/queue-path: root.org.ray"), "", nil, "jobs.batch/train submitted\n", object{
			"metadata.annotations[koord-queue/queue-path]": "root.org.ray", pods + "[" + quota + "]": "ray",
		}},
		{"the quota of the namespace", job, "", []string{"--queue=express"}, "jobs.batch/train submitted\n", object{
			"metadata.labels[" + queue + "]": "express", "metadata.labels[" + quota + "]": nil,
		}},
		{"a name of the server", strings.Replace(job, "{name: train}", "{generateName: train-}", 1), "",
			[]string{"--quota=a"}, "jobs.batch/train-x7x submitted\n", object{"spec.suspend": true}},
		{"a described kind", train, trainKind, []string{"--quota=a"}, "trains.example.com/t submitted\n", object{
			"spec.paused": true, pods + "[" + quota + "]": "a",
		}},
		{"the profile of the installation", job, "schedulerNames: [gpus]", []string{"--quota=a"},
			"jobs.batch/train submitted\n", object{"spec.template.spec.schedulerName": "gpus"}},
		{"a configuration of a later release", job, "later: true", []string{"--quota=a"}, "jobs.batch/train submitted\n",
			object{"spec.suspend": true}},
		{"another profile", job, "", []string{"--quota=a", "--scheduler-name=gpus"},
			"jobs.batch/train submitted\n", object{"spec.template.spec.schedulerName": "gpus"}},
		{"a pod", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {" + queue + ": express}}\n" +
			"spec: {containers: [{name: c}]}", "kinds: [Pod.v1.]", []string{"--quota=a"}, "pods/p submitted\n", object{
			"metadata.labels[" + quota + "]": "a", "metadata.labels[" + queue + "]": "express",
			"spec.schedulerName": "koord-scheduler",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.managed = tc.managed
			out, _, _, err := s.run(tc.text, tc.args...)
			require.NoError(t, err)
			require.Equal(t, tc.out, out)
			require.Len(t, s.created, 1)
			for path, want := range tc.want {
				require.Equal(t, want, at(s.created[0], path), path)
			}
		})
	}
}

// TestFilesOfSeveralObjects: one job that cannot be queued keeps all objects from being created.
func TestFilesOfSeveralObjects(t *testing.T) {
	const config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n"
	pytorch := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: p}\n" +
		"spec: {pytorchReplicaSpecs: {Master: {template: " + template + "}}}\n"
	var listed []any
	for _, text := range []string{config, job} {
		var one object
		require.NoError(t, yaml.Unmarshal([]byte(text), &one))
		listed = append(listed, one)
	}
	list, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": listed})
	require.NoError(t, err)
	for _, tc := range []struct {
		name, text, managed string
		args                []string
		out, refused        string
	}{
		{"a ConfigMap and a job", config + job, "", nil, "configmaps/settings created\njobs.batch/train submitted\n", ""},
		{"a List", string(list), "", nil, "configmaps/settings created\njobs.batch/train submitted\n", ""},
		{"an object that is there goes on", strings.Replace(config, "settings", "taken", 1) + job, "", nil,
			"jobs.batch/train submitted\n", "configmaps/taken: Conflict"},
		{"a job that cannot be queued", config + job + "---\n" + strings.Replace(job, "restartPolicy: Never",
			"schedulerName: others", 1), "", nil, "", "others"},
		{"two quotas", config + strings.NewReplacer("{name: train}", "{name: train, labels: {"+quota+": a}}",
			"template: {", "template: {metadata: {labels: {"+quota+": b}}, ").Replace(job), "", nil, "", "more than one quota"},
		{"a kind that nobody resumes", config + pytorch, "kinds: [Job.v1.batch]", nil, "", "manages jobs of this kind"},
		{"no job", config, "", nil, "", "no job of a kind that can be queued"},
		{"nothing", "", "", nil, "", ""},
		{"another namespace", config + strings.Replace(job, "{name: train}", "{name: train, namespace: blue}", 1), "",
			[]string{"-n", "red"}, "", "does not match the namespace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.managed = tc.managed
			out, _, code, err := s.run(tc.text, tc.args...)
			require.Equal(t, tc.out, out)
			require.Len(t, s.created, strings.Count(tc.out, "\n"))
			if tc.refused == "" && tc.out != "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.refused)
			require.Equal(t, 1, code)
		})
	}
}

// unit is that of the job in a phase.
func unit(phase, uid string) object {
	return object{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": object{"name": "train", "namespace": "team"},
		"spec":     object{"consumerRef": object{"kind": "Job", "name": "train", "uid": uid}},
		"status":   object{"phase": phase}}
}

func event(kind string, o object) object { return object{"type": kind, "object": o} }

// jobIn is the job with a condition, none if that is empty.
func jobIn(condition, uid string) object {
	o := object{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": "train", "namespace": "team", "uid": uid}, "status": object{}}
	if condition != "" {
		o["status"] = object{"conditions": []object{{"type": condition, "status": "True", "message": "a reason"}}}
	}
	return o
}

// TestJobsAreFollowed to their end, whatever the API server does.
func TestJobsAreFollowed(t *testing.T) {
	gone := "jobs.batch/train is gone: it was deleted before its end was seen\n"
	list := func(items ...object) answer { return answer{items: items} }
	for _, tc := range []struct {
		name           string
		lists, watches map[string][]answer
		out            string
		code           int
		told           string
	}{
		{name: "success", out: "jobs.batch/train Running\njobs.batch/train Succeeded\n", watches: map[string][]answer{
			"queueunits": {list(event("ADDED", unit("Running", "ours")), event("MODIFIED", unit("Succeed", "ours")))},
		}},
		{name: "failure", out: "jobs.batch/train Failed\n", code: 1, lists: map[string][]answer{
			"queueunits": {list(unit("Failed", "ours"))},
		}},
		{name: "the unit of a former job", out: "jobs.batch/train Succeeded\n", lists: map[string][]answer{
			"queueunits": {list(unit("Failed", "former"))},
		}, watches: map[string][]answer{
			"queueunits": {list(event("DELETED", unit("Failed", "former")), event("ADDED", unit("Succeed", "ours")))},
		}},
		{name: "errors of the server", out: "jobs.batch/train Succeeded\n", told: "Cannot follow",
			lists: map[string][]answer{
				"queueunits": {
					{status: 500}, {status: cutOff}, {status: 503}, {status: 429}, list(), list(), list(unit("Succeed", "ours")),
				},
			}, watches: map[string][]answer{
				"queueunits": {{status: 410}, {cut: true, items: []object{event("ERROR", failure(410))}}},
			}},
		{name: "a watch that ends", out: "jobs.batch/train Running\njobs.batch/train Succeeded\n",
			lists: map[string][]answer{
				"queueunits": {list(unit("Running", "ours")), list(unit("Running", "ours")), list(unit("Succeed", "ours"))},
			}, watches: map[string][]answer{"queueunits": {{cut: true}, {cut: true}}}},
		{name: "deleted before it was seen", out: gone, code: 2, lists: map[string][]answer{"jobs": {list()}}},
		{name: "deleted while it waits", out: gone, code: 2, watches: map[string][]answer{
			"jobs": {list(event("DELETED", jobIn("", "ours")))},
		}},
		{name: "created again", out: gone, code: 2, lists: map[string][]answer{"jobs": {list(jobIn("", "another"))}}},
		{name: "deleted as it ends", out: "jobs.batch/train Succeeded\n", watches: map[string][]answer{
			"jobs": {list(event("DELETED", jobIn("Complete", "ours")))},
		}},
		{name: "deleted as it fails", out: "jobs.batch/train Failed (a reason)\n", code: 1, watches: map[string][]answer{
			"jobs": {list(event("DELETED", jobIn("Failed", "ours")))},
		}},
		{name: "without a right", code: 1, lists: map[string][]answer{"queueunits": {{status: 403}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			if tc.lists != nil {
				s.lists = tc.lists
			}
			if tc.watches != nil {
				s.watches = tc.watches
			}
			out, told, code, err := s.run(job, "--quota=a", "--wait", "--timeout=20s")
			require.Equal(t, "jobs.batch/train submitted\n"+tc.out, out, "%v %s", err, told)
			require.Equal(t, tc.code, code, "%v", err)
			require.Contains(t, told, tc.told)
		})
	}
}

// TestTheTimeIsOver: the exit code differs from that of a failure.
func TestTheTimeIsOver(t *testing.T) {
	_, told, code, err := newServer(t).run(job, "--quota=a", "--wait", "--timeout=100ms")
	require.ErrorIs(t, err, errTimeout)
	require.Equal(t, 3, code)
	require.Contains(t, told, "has no QueueUnit yet")
}
