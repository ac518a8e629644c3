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

package jobs

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/kinds"
)

// made is a kind that this repository does not know, as a user would describe it.
const made = `
apiVersion: factory.example/v1
kind: Widget
resource: widgets
suspend: {field: .spec.paused}
podSets:
- name: leader
  path: .spec.leader
  optional: true
  count: [{default: 1, field: .never}]
  template: .pod
- path: .spec.groups.*
  nameField: .groupName
  count: [{field: .replicas, default: 1}, {field: .hosts, default: 1}]
  template: .pod
- path: .spec.roles.*
  count: [{least: [{field: .replicas}, {field: $.spec.most}]}]
  template: .pod
priorityClass: [.spec.class]
managedBy: {field: .spec.managedBy, own: [factory.example/widgets]}
state:
  succeeded: self.status.phase == "Done"
  failed: self.status.phase == "Broken"
  message: self.status.note
  ready: self.status.pods.filter(p, p.ready).size()
  active: self.status.pods.size()
pods: {label: factory.example/widget, value: Name}
`

func widget(t testing.TB) *jobkind.Kind {
	t.Helper()
	kind, err := jobkind.ParseDescriptor([]byte(made))
	require.NoError(t, err)
	return kind
}

// Every file of the built-in kinds is a descriptor, named by its kind.
func TestBuiltInKindsAreDescribed(t *testing.T) {
	names, err := fs.Glob(kinds.Files, "*.yaml")
	require.NoError(t, err)
	require.Len(t, jobkind.Builtin(), len(names))
	seen := map[string]bool{}
	for i, kind := range jobkind.Builtin() {
		require.False(t, seen[kind.String()], kind.String())
		seen[kind.String()] = true
		require.Contains(t, names[i], strings.ToLower(kind.GVK.Kind))
	}
}

func TestAKindThatNobodyKnows(t *testing.T) {
	kind := widget(t)
	require.Equal(t, "Widget.v1.factory.example", kind.String())
	require.Equal(t, "w-widget", kind.UnitName("w"))
	job := object(t, `
metadata: {name: w, namespace: team, labels: {koord-queue/queue-name: q}}
spec:
  paused: true
  class: high
  most: 3
  leader: {pod: {spec: {containers: [{name: c}]}}}
  groups:
  - {groupName: Small_Ones, replicas: 2, hosts: 4, pod: {spec: {containers: [{name: c}]}}}
  - {groupName: large, pod: {metadata: {labels: {`+"quota.scheduling.koordinator.sh/name"+`: a}},
	spec: {containers: [{name: c}]}}}
  roles:
    Worker: {replicas: 9, pod: {spec: {containers: [{name: c}]}}}
    Chief: {pod: {spec: {containers: [{name: c}]}}}
`)
	sets, err := Open(kind, job).PodSets()
	require.NoError(t, err)
	counts := map[string]int32{}
	names := make([]string, 0, len(sets))
	for i := range sets {
		names = append(names, sets[i].Name)
		counts[sets[i].Name] = sets[i].Count
	}
	require.Equal(t, []string{"leader", "small-ones", "large", "chief", "worker"}, names)
	require.Equal(t, map[string]int32{"leader": 1, "small-ones": 8, "large": 1, "chief": 3, "worker": 3}, counts)
	quota, err := Open(kind, job).Quota()
	require.NoError(t, err)
	require.Equal(t, "a", quota)
	require.True(t, Open(kind, job).Suspended())
	require.True(t, Open(kind, job).PodSelector().Matches(labels.Set{"factory.example/widget": "w"}))
	priority, err := Open(kind, job).Priority()
	require.NoError(t, err)
	require.Equal(t, "high", priority.Class)

	// Additions to each template are removed from each.
	before := job.DeepCopy()
	additions := map[string]Addition{}
	for _, name := range names {
		additions[name] = Addition{Labels: map[string]string{"quota.scheduling.koordinator.sh/name": "b"}}
	}
	require.NoError(t, EditOf(kind, job).AddToTemplates(additions))
	sets, err = Open(kind, job).PodSets()
	require.NoError(t, err)
	for i := range sets {
		require.Equal(t, "b", sets[i].Template.Labels["quota.scheduling.koordinator.sh/name"], sets[i].Name)
	}
	require.True(t, EditOf(kind, job).RestoreTemplates(nil))
	_, err = Open(kind, job).PodSets()
	require.NoError(t, err)
	require.Equal(t, before.Object["spec"].(map[string]any)["leader"], job.Object["spec"].(map[string]any)["leader"])
}

func TestStateOfAKindThatNobodyKnows(t *testing.T) {
	kind := widget(t)
	for text, want := range map[string]struct {
		end           End
		ended         bool
		ready, active int64
	}{
		"{}":                                              {},
		"status: {phase: Running}":                        {},
		"status: {phase: 3, pods: 7, note: [1]}":          {},
		"status: {phase: Done, note: fine}":               {end: End{Succeeded: true, Message: "fine"}, ended: true},
		"status: {phase: Broken}":                         {ended: true},
		"status: {pods: [{ready: true}, {ready: false}]}": {ready: 1, active: 2},
		"status: {pods: [{ready: true}, {}]}":             {active: 2},
	} {
		t.Run(text, func(t *testing.T) {
			job := object(t, text)
			end, ended := Open(kind, job).Ended()
			require.Equal(t, want.ended, ended)
			require.Equal(t, want.end, end)
			require.Equal(t, want.ready, Open(kind, job).Running())
			require.Equal(t, want.active, Open(kind, job).Active())
		})
	}
}

// An operator may suspend by an annotation, alone or together with a field.
func TestSuspensionByAnnotation(t *testing.T) {
	const key = "scheduling.x-k8s.io/suspend"
	for name, tc := range map[string]struct {
		rule           string
		suspend        func(*unstructured.Unstructured)
		before, resume string
	}{
		"alone": {"{annotation: " + key + "}", func(job *unstructured.Unstructured) {}, "", "false"},
		"beside a field, and not used": {
			"{field: .spec.paused, annotation: " + key + "}", func(*unstructured.Unstructured) {}, "", "",
		},
		"beside a field, by a user of Koord-Queue": {
			"{field: .spec.paused, annotation: " + key + "}",
			func(job *unstructured.Unstructured) { job.SetAnnotations(map[string]string{key: "true"}) }, "true", "false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, err := jobkind.ParseDescriptor([]byte(strings.Replace(made, "{field: .spec.paused}", tc.rule, 1)))
			require.NoError(t, err)
			job := object(t, "{}")
			tc.suspend(job)
			require.False(t, Open(kind, job).Suspended(), "an annotation beside the field says nothing")
			require.Equal(t, tc.before, job.GetAnnotations()[key])
			require.NoError(t, EditOf(kind, job).SetSuspend(true))
			require.True(t, Open(kind, job).Suspended())
			require.NoError(t, EditOf(kind, job).SetSuspend(false))
			require.False(t, Open(kind, job).Suspended())
			require.Equal(t, tc.resume, job.GetAnnotations()[key])
		})
	}
}

func TestPodSetsThatAreNotThere(t *testing.T) {
	kind := widget(t)
	sets, err := Open(kind, object(t, "{}")).PodSets()
	require.NoError(t, err, "one is optional, and of the others there may be none")
	require.Empty(t, sets)
	_, err = Open(kind, object(t, "spec: {groups: [{groupName: a, pod: {}}, {groupName: A, pod: {}}]}")).PodSets()
	require.ErrorIs(t, err, podtemplate.ErrMalformed)
	_, err = Open(kind, object(t, "spec: {groups: [{groupName: a}]}")).PodSets()
	require.ErrorContains(t, err, ".spec.groups.0.pod is not an object")
}

// A compact job reads like the job itself.
func TestACompactJobOfAnyKind(t *testing.T) {
	kind := widget(t)
	whole := object(t, `
metadata: {name: w, namespace: team, uid: u}
spec:
  paused: true
  most: 2
  unread: {a: b}
  leader: {image: x, pod: {spec: {containers: [{name: c, env: [{name: KEY, value: secret}],
	resources: {requests: {cpu: 1}}}]}}}
  groups: [{groupName: g, replicas: 2, unread: 1, pod: {spec: {containers: [{name: c, command: [secret]}]}}}]
status: {phase: Done, note: fine, pods: [{ready: true, name: x}], unread: y}
`)
	whole.SetGroupVersionKind(kind.GVK)
	kept, err := compact.Expand(compact.Job(kind, whole.DeepCopy(), false))
	require.NoError(t, err)
	text, err := kept.MarshalJSON()
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "unread")
	want, err := Open(kind, whole).PodSets()
	require.NoError(t, err)
	have, err := Open(kind, kept).PodSets()
	require.NoError(t, err)
	require.Len(t, have, len(want))
	for i := range want {
		require.Equal(t, want[i].Name, have[i].Name)
		require.Equal(t, want[i].Count, have[i].Count)
	}
	end, ended := Open(kind, kept).Ended()
	require.True(t, ended)
	require.Equal(t, End{Succeeded: true, Message: "fine"}, end)
	require.EqualValues(t, 1, Open(kind, kept).Running())
}

func TestDescriptorsThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"a field that is none": {"resource: widgets", "resources: widgets", `unknown field "resources"`},
		"no kind":              {"kind: Widget", "kind: \"\"", "kind: Required value"},
		"no version":           {"apiVersion: factory.example/v1", "apiVersion: a/b/c", "apiVersion: Invalid value"},
		"nothing to suspend by": {"suspend: {field: .spec.paused}", "suspend: {}",
			"suspend: Required value: a field or an annotation"},
		"suspension in status": {".spec.paused", ".status.paused",
			"suspend.field: Invalid value: \".status.paused\": it has to be below .spec"},
		"suspension of many":  {".spec.paused", ".spec.*.paused", "it has no stars"},
		"a path that is none": {".spec.paused", "spec.paused", `a path begins with "."`},
		"an index in a path":  {".spec.paused", "\".spec.a[0]\"", `"a[0]" is no name of a field`},
		"one name for many":   {"  nameField: .groupName", "  name: groups", "several pod sets cannot have one name"},
		"no count": {"  count: [{field: .replicas, default: 1}, {field: .hosts, default: 1}]\n", "",
			"podSets[1].count: Required value"},
		"a count of nothing": {"{default: 1, field: .never}", "{less: .a}", "podSets[0].count[0]: Invalid value"},
		"a negative default": {"{default: 1, field: .never}", "{default: -1, field: .never}", "must not be negative"},
		"labels in status": {"template: .pod\n- path: .spec.groups",
			"template: .pod\n  labels: $.status.x\n- path: .spec.groups",
			"podSets[0].labels: Invalid value: \".status.x\": it has to be below .spec"},
		"no template": {"  template: .pod\n- path: .spec.groups", "- path: .spec.groups",
			"podSets[0].template: Required value: or computed"},
		"a template in two places": {"template: .pod\n- path: .spec.groups",
			"template: .pod\n  templateField: .at\n- path: .spec.groups", "it stands in place of template and computed"},
		"a template from elsewhere": {"  template: .pod\n- path: .spec.roles",
			"  templateField: .at\n  templateFrom: .spec.roles\n- path: .spec.roles",
			"podSets[1].templateFrom: Invalid value: \".spec.roles\": it is no beginning of path below .spec"},
		"a code that is none": {"template: .pod\n- path: .spec.groups", "computed: magic\n- path: .spec.groups",
			"podSets[0].computed: Unsupported value: \"magic\""},
		"a child of no kind": {"priorityClass:", "child: {apiVersion: v1, kind: A, resource: as}\npriorityClass:",
			"child: Invalid value: \"A\": it is none of the children"},
		"a rule without a sentence": {"priorityClass:", "valid: [{rule: has(self.spec.a)}]\npriorityClass:",
			"valid[0].message: Required value"},
		"an expression that is none": {`self.status.phase == "Done"`, `self.status.phase ==`,
			"state.succeeded: Invalid value"},
		"of another type":        {"self.status.pods.size()", `'"many"'`, "it gives a value of type string, want int"},
		"of the whole job":       {"self.status.note", "string(self)", "self as a whole cannot be read"},
		"of something else":      {"self.status.note", "pod.status.note", "undeclared reference to 'pod'"},
		"pods by something else": {"value: Name", "value: Owner", `pods.value: Invalid value: "Owner"`},
		"pods by no label":       {"label: factory.example/widget", "label: a b", "pods.label: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, made, tc.from)
			_, err := jobkind.ParseDescriptor([]byte(strings.Replace(made, tc.from, tc.to, 1)))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// FuzzDescriptor has any description read any object: it may be refused, and never panics.
func FuzzDescriptor(f *testing.F) {
	objects := []string{"{}", "spec: {paused: 1, groups: {a: 1}, roles: [1, {pod: []}]}", "spec: []\nstatus: {phase: {}}"}
	f.Add(made, objects[1])
	f.Add(strings.Replace(made, "  template: .pod\n- path: .spec.roles",
		"  templateField: .at\n  templateFrom: .spec.groups\n- path: .spec.roles", 1), "spec: {groups: {a: {at: 'b[1].c'}}}")
	for _, kind := range jobkind.Builtin() {
		for _, object := range objects {
			f.Add(string(kind.Text()), object)
		}
	}
	f.Fuzz(func(t *testing.T, description, object string) {
		kind, err := jobkind.ParseDescriptor([]byte(description))
		job := &unstructured.Unstructured{Object: map[string]any{}}
		if err != nil || yaml.Unmarshal([]byte(object), &job.Object) != nil || job.Object == nil {
			return
		}
		tryKind(t, kind, job)
	})
}

// A kind whose expressions read metadata keeps the rest of it as well: the owner distinguishes a job from a part of
// another one.
func TestMetadataThatAKindReadsIsKeptBesideTheRest(t *testing.T) {
	kind, err := jobkind.ParseDescriptor([]byte(made + `valid:
- {rule: 'self.metadata.labels["a"] == "b" && self.metadata.annotations["note"] == "c"', message: it has to say so}
`))
	require.NoError(t, err)
	job := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "w", "uid": "1", "labels": map[string]any{"a": "b"},
		"annotations": map[string]any{"note": "c", v1alpha1.AnnotationSuspendedBy: "d", "secret": "e"},
	}}}
	controls := true
	job.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "factory.example/v1", Kind: "Plant", Name: "p", UID: "2", Controller: &controls,
	}})
	job.SetGroupVersionKind(kind.GVK)
	kept, err := compact.Expand(compact.Job(kind, job.DeepCopy(), false))
	require.NoError(t, err)
	require.Equal(t, metav1.GetControllerOf(job), metav1.GetControllerOf(kept))
	require.Empty(t, Open(kind, kept).Invalid())
	annotations := job.GetAnnotations()
	delete(annotations, "secret")
	require.Equal(t, annotations, kept.GetAnnotations())
}
