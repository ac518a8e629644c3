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

package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/tenancy"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// attacked is a kind of jobs, with everything that names a quota, a queue or a node in it.
type attacked struct {
	resource schema.GroupVersionResource
	job      string
	// metadata are the objects that have labels and annotations, and nodes the pods' specs.
	metadata, nodes []string
}

func gvr(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

var attackedKinds = map[string]attacked{
	"PyTorchJob": {gvr("kubeflow.org", "v1", "pytorchjobs"), `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}
    # The operator reads it as Worker, too.
    worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}
`,
		[]string{
			"metadata", "spec.pytorchReplicaSpecs.Master.template.metadata",
			"spec.pytorchReplicaSpecs.Worker.template.metadata", "spec.pytorchReplicaSpecs.worker.template.metadata",
		},
		[]string{"spec.pytorchReplicaSpecs.Master.template.spec", "spec.pytorchReplicaSpecs.worker.template.spec"},
	},
	"JobSet": {gvr("jobset.x-k8s.io", "v1alpha2", "jobsets"), `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
  - {name: a, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}
  - {name: b, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}
`,
		[]string{
			"metadata", "spec.replicatedJobs.0.template.metadata", "spec.replicatedJobs.0.template.spec.template.metadata",
			"spec.replicatedJobs.1.template.spec.template.metadata",
		},
		[]string{"spec.replicatedJobs.1.template.spec.template.spec"},
	},
	"RayCluster": {gvr("ray.io", "v1", "rayclusters"), `
apiVersion: ray.io/v1
kind: RayCluster
spec:
  headGroupSpec: {template: {spec: {containers: [{name: c, image: i}]}}}
  workerGroupSpecs:
  - {groupName: a, minReplicas: 0, maxReplicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}
  - {groupName: b, minReplicas: 0, maxReplicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}
`,
		[]string{
			"metadata", "spec.headGroupSpec.template.metadata", "spec.workerGroupSpecs.0.template.metadata",
			"spec.workerGroupSpecs.1.template.metadata",
		},
		[]string{"spec.headGroupSpec.template.spec", "spec.workerGroupSpecs.1.template.spec"},
	},
	"SparkApplication": {gvr("sparkoperator.k8s.io", "v1beta2", "sparkapplications"), `
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
spec: {type: Scala, sparkVersion: 4.0.0, mode: cluster, driver: {cores: 1}, executor: {cores: 1}}
`,
		[]string{
			"metadata", "spec.driver", "spec.executor", "spec.driver.template.metadata", "spec.executor.template.metadata",
		},
		[]string{"spec.driver.template.spec"},
	},
	"Workflow": {gvr("argoproj.io", "v1alpha1", "workflows"), `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
  entrypoint: a
  templates:
  - {name: a, container: {image: i}}
  - {name: b, container: {image: i}}
`,
		[]string{
			"metadata", "spec.podMetadata", "spec.templates.0.metadata", "spec.templates.1.metadata",
			"spec.templateDefaults.metadata",
		},
		nil,
	},
	// As Trainer 2.1 has it, and as 2.2 and 2.3 do: who patches, a text of the tenant, is no right.
	"TrainJob": {gvr("trainer.kubeflow.org", "v1alpha1", "trainjobs"), `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec:
  runtimeRef: {name: torch-distributed}
  podTemplateOverrides: [{targetJobs: [{name: node}]}, {targetJobs: [{name: launcher}]}]
  runtimePatches:
  - manager: koord-queue/jobqueue-controller
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node}]}}}
  - manager: kueue.x-k8s.io/manager
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node}, {name: launcher}]}}}
`,
		[]string{
			"metadata", "spec", "spec.podTemplateOverrides.1.metadata",
			runtimePatch + "1.trainingRuntimeSpec.template.metadata", patchedJob + "1.template.metadata",
			"spec.runtimePatches.0.trainingRuntimeSpec.template.spec.replicatedJobs.0.template.spec.template.metadata",
			patchedJob + "1.template.spec.template.metadata",
		},
		[]string{"spec.podTemplateOverrides.1.spec", patchedJob + "1.template.spec.template.spec"},
	},
	// Described by an example.
	"AppWrapper": {gvr("workload.codeflare.dev", "v1beta2", "appwrappers"), `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
spec:
  components:
  - {podSets: [{path: template}], template: {kind: Pod, spec: {containers: [{name: c, image: i}]}}}
  - {podSets: [{path: template.spec.template}], template: {kind: Job, spec: {template: {spec: {}}}}}
  - podSets: [{path: "template.spec.workerGroupSpecs[1].template"}]
    template: {kind: RayCluster, spec: {workerGroupSpecs: [{template: {spec: {}}}, {template: {spec: {}}}]}}
`,
		[]string{
			"metadata", "spec.components.0.template.metadata", "spec.components.1.template.spec.template.metadata",
			"spec.components.2.template.spec.workerGroupSpecs.1.template.metadata",
		},
		[]string{
			"spec.components.0.template.spec", "spec.components.1.template.spec.template.spec",
			"spec.components.2.template.spec.workerGroupSpecs.1.template.spec",
		},
	},
	// A kind with a description of its user.
	"Foray": {gvr("example.com", "v1", "forays"), `
apiVersion: example.com/v1
kind: Foray
spec:
  waves:
  - groups-of: {x: {template: {spec: {}}}, y: {template: {spec: {}}}}
  - groups-of: {z: {template: {spec: {}}}}
`,
		[]string{
			"metadata", "spec.waves.0.groups-of.y.template.metadata", "spec.waves.1.groups-of.z.template.metadata",
		},
		[]string{"spec.waves.1.groups-of.z.template.spec"},
	},
}

const (
	runtimePatch = "spec.runtimePatches."
	patchedJob   = runtimePatch + "1.trainingRuntimeSpec.template.spec.replicatedJobs."

	foray = `
apiVersion: example.com/v1
kind: Foray
resource: forays
podSets:
- path: .spec.waves.*.groups-of.*
  count: [{default: 1}]
  template: .template
state: {}
pods: {label: example.com/foray}
`
)

// definition of a kind whose objects may hold anything.
func definition(group, version, kind string) []byte {
	name := strings.ToLower(kind)
	return fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %ss.%s}
spec:
  group: %s
  names: {kind: %s, listKind: %sList, plural: %ss, singular: %s}
  scope: Namespaced
  versions:
  - name: %s
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, name, group, group, kind, kind, name, name, version)
}

// exampleKind is the kind that is described in examples/kinds.
func exampleKind(t *testing.T) *jobkind.Kind {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples/kinds/appwrapper.yaml"))
	require.NoError(t, err)
	managed, err := managedjobs.Parse(string(text))
	require.NoError(t, err)
	predicate, err := managedjobs.NewPredicate(managed)
	require.NoError(t, err)
	kinds := predicate.Kinds()
	i := slices.IndexFunc(kinds, func(k jobkind.Kind) bool { return k.GVK.Kind == "AppWrapper" })
	return &kinds[i]
}

// installKinds applies the definitions of the kinds, and their policies as they refuse.
func installKinds(t *testing.T) {
	t.Helper()
	require.NoError(t, server.ApplyOperatorCRDs(t.Context(), controlplane.TrainingOperator, "pytorchjobs"))
	require.NoError(t, server.ApplyOperatorCRDs(t.Context(), controlplane.JobSet, ""))
	require.NoError(t, server.ApplyOperatorCRDs(t.Context(), controlplane.KubeRay, ""))
	require.NoError(t, server.ApplyStandInCRDs(t.Context()))
	require.NoError(t, server.Apply(t.Context(), definition("example.com", "v1", "Foray")))
	require.NoError(t, server.Apply(t.Context(), definition("workload.codeflare.dev", "v1beta2", "AppWrapper")))
	require.NoError(t, server.Apply(t.Context(), definition("trainer.kubeflow.org", "v1alpha1", "TrainJob")))

	dir := t.TempDir()
	manifests, err := filepath.Abs(filepath.Join(root, "manifests"))
	require.NoError(t, err)
	manifests, err = filepath.Rel(dir, manifests)
	require.NoError(t, err)
	kind, err := jobkind.ParseDescriptor([]byte(foray))
	require.NoError(t, err)
	text := "resources: [foray.yaml, appwrapper.yaml"
	for file, kind := range map[string]*jobkind.Kind{"foray": kind, "appwrapper": exampleKind(t)} {
		policies, err := tenancy.Manifest(kind, file, tenancy.Deny)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file+".yaml"), policies, 0o600))
	}
	for _, kind := range jobkind.Builtin() {
		text += ", " + manifests + "/components/kinds/" + kind.File()
	}
	text += "]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	install(t, "components/tenancy") // as it warns: another test is about that
	installFrom(t, dir)
}

// TestTenancyOfKinds: every kind with pods is checked like Jobs, wherever it names a quota, a queue, a priority or a
// node. All shipped policies are there, and refuse.
func TestTenancyOfKinds(t *testing.T) {
	const namespace = "tenant-kinds"
	admin := connect(t)
	installKinds(t)
	ensureNamespace(t, admin, namespace)
	writesKinds(t, namespace)
	alice := tenantNamed(t, "alice").dynamic
	for name, kind := range attackedKinds {
		t.Run(name, func(t *testing.T) {
			a := attack{t: t, attacked: kind, admin: admin.Resource(kind.resource).Namespace(namespace),
				alice: alice.Resource(kind.resource).Namespace(namespace)}
			require.NoError(t, a.create(a.read()))
			for _, at := range kind.metadata {
				t.Run(at, func(t *testing.T) { a.names(t, at) })
			}
			for _, at := range kind.nodes {
				t.Run(at, func(t *testing.T) { a.binds(t, at) })
				t.Run(at+" of a quota", func(t *testing.T) { a.isBounded(t, at) })
			}
			t.Run("priority", a.prioritizes)
			t.Run("annotations", a.isLarge)
			if name == "RayCluster" {
				t.Run("many groups", a.hasManyGroups)
			}
			switch name {
			case "AppWrapper":
				t.Run("many groups", a.hasManyGroupsBelow)
			case "TrainJob":
				t.Run("trainer 2.3", a.isOfTrainer23)
			}
			t.Run("two", a.namesTwo)
			t.Run("the operator", a.isMadeByAnOperator)
		})
	}
}

// attack is what alice, who may use quota-a and queue-a, tries with one kind.
type attack struct {
	attacked
	t            *testing.T
	admin, alice dynamic.ResourceInterface
}

func (a *attack) read() *unstructured.Unstructured {
	job := &unstructured.Unstructured{}
	require.NoError(a.t, yaml.Unmarshal([]byte(a.job), &job.Object))
	job.SetGenerateName("j-")
	return job
}

func (a *attack) create(job *unstructured.Unstructured) error {
	_, err := a.alice.Create(a.t.Context(), job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (a *attack) labelled(at, key, value string) *unstructured.Unstructured {
	return a.with(a.read(), at+".labels", key, value)
}

// with sets a field of an object; a number in the path is an index. Missing parents are created.
func (a *attack) with(job *unstructured.Unstructured, at, key string, value any) *unstructured.Unstructured {
	var here any = job.Object
	for _, step := range strings.Split(at, ".") {
		if list, ok := here.([]any); ok {
			i, err := strconv.Atoi(step)
			require.NoError(a.t, err)
			here = list[i]
			continue
		}
		fields := here.(map[string]any)
		if fields[step] == nil {
			fields[step] = map[string]any{}
		}
		here = fields[step]
	}
	here.(map[string]any)[key] = value
	return job
}

func refused(t *testing.T, err error, why string) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, why)
}

// names tries everything that is no number in one place.
func (a *attack) names(t *testing.T, at string) {
	for _, key := range v1alpha1.QuotaLabels {
		refused(t, a.create(a.labelled(at, key, "quota-b")), `alice nor namespace tenant-kinds may use quota quota-b`)
		require.NoError(t, a.create(a.labelled(at, key, "quota-a")), key)
	}
	for _, where := range []string{at + ".labels", at + ".annotations"} {
		refused(t, a.create(a.with(a.read(), where, v1alpha1.QueueNameKey, "queue-b")), `may use queue queue-b`)
		require.NoError(t, a.create(a.with(a.read(), where, v1alpha1.QueueNameKey, "queue-a")))
		ofQuota := a.with(a.labelled(at, v1alpha1.LabelQuotaName, "quota-a"), where, v1alpha1.QueueNameKey, "quota-a")
		require.NoError(t, a.create(ofQuota), "the queue of her quota")
		for _, path := range []string{"root.quota-b", "root.quota-a.quota-b", "root.quota-a\nquota-b"} {
			require.Error(t, a.create(a.with(a.read(), where, v1alpha1.QueuePathKey, path)), path)
		}
		atPath := a.with(a.read(), where, v1alpha1.QueuePathKey, "root.quota-a")
		require.NoError(t, a.create(a.with(atPath, where, v1alpha1.QueueNameKey, "quota-a")), "the queue of her path")
	}
	lists := func(names string) error {
		return a.create(a.with(a.read(), at+".annotations", v1alpha1.AnnotationQuotaNames, names))
	}
	for _, names := range []string{"quota-b", "quota-a,quota-b", "quota-b, quota-a"} {
		refused(t, lists(names), each)
	}
	require.NoError(t, lists("quota-a"))
	require.Error(t, lists("quota-a\nquota-b"))
	const groups = extension.AnnotationGangGroups
	refused(t, a.create(a.with(a.read(), at+".annotations", groups, "[\"tenant-kinds/g\",\n\"victim/g\"]")),
		"names gangs that are not of this namespace")
	require.NoError(t, a.create(a.with(a.read(), at+".annotations", groups, "[\"tenant-kinds/g\",\n\"tenant-kinds/h\"]")))
	a.goesOn(t, at)
}

// goesOn: a job may keep its present names, and use no new ones.
func (a *attack) goesOn(t *testing.T, at string) {
	t.Helper()
	job := a.labelled(at, v1alpha1.LabelQuotaName, "quota-b")
	a.with(job, at+".annotations", v1alpha1.QueueNameKey, "queue-b")
	a.with(job, at+".annotations", v1alpha1.AnnotationQuotaNames, "quota-b")
	job, err := a.admin.Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	update := func(at, key, value string) error {
		_, err := a.alice.Update(t.Context(), a.with(job.DeepCopy(), at, key, value), metav1.UpdateOptions{})
		return err
	}
	refused(t, update(at+".labels", v1alpha1.LabelQuotaName, "quota-c"), "may use quota quota-c")
	refused(t, update(at+".annotations", v1alpha1.QueueNameKey, "queue-c"), "may use queue queue-c")
	refused(t, update(at+".annotations", v1alpha1.AnnotationQuotaNames, "quota-b,quota-c"), each)
	require.NoError(t, update("metadata.annotations", "a", "b"))
}

func (a *attack) binds(t *testing.T, at string) {
	refused(t, a.create(a.with(a.read(), at, "nodeName", "node-a")), "alice may not name node node-a")
	job, err := a.admin.Create(t.Context(), a.with(a.read(), at, "nodeName", "node-a"), metav1.CreateOptions{})
	require.NoError(t, err, "an administrator")
	a.with(job, "metadata.labels", "a", "b")
	_, err = a.alice.Update(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err, "it may go on")
}

// isBounded tries what a spec of pods says if the job names a quota.
func (a *attack) isBounded(t *testing.T, at string) {
	meta := strings.TrimSuffix(at, "spec") + "metadata"
	for _, c := range []struct {
		at, key    string
		value, may any
		why        string
	}{
		{at, "schedulerName", "mine", "koord-scheduler",
			"scheduler mine does not ask the queue: name one of koord-scheduler"},
		{at, "schedulerName", "mine", "default-scheduler", "scheduler mine does not ask the queue"},
		{at, "terminationGracePeriodSeconds", int64(3601), int64(3600), "terminationGracePeriodSeconds is more than 3600"},
		{at, "priorityClassName", "system-node-critical", "high",
			`may not give pods the priority class system-node-critical: that needs the verb "prioritize"`},
		{meta, "finalizers", []any{"example.com/mine"}, []any{}, "pods that name a quota have no finalizers"},
	} {
		job := func(value any) *unstructured.Unstructured {
			return a.with(a.labelled("metadata", v1alpha1.LabelQuotaName, "quota-a"), c.at, c.key, value)
		}
		refused(t, a.create(job(c.value)), c.why)
		require.NoError(t, a.create(job(c.may)), c.key)
		require.NoError(t, a.create(a.with(a.read(), c.at, c.key, c.value)), "it is not queued")
		queued, err := a.admin.Create(t.Context(), a.with(a.read(), c.at, c.key, c.value), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = a.alice.Update(t.Context(), a.with(queued, "metadata.labels", v1alpha1.LabelQuotaName, "quota-a"),
			metav1.UpdateOptions{})
		refused(t, err, c.why)
	}
}

// isLarge leaves the controller no room for its marks.
func (a *attack) isLarge(t *testing.T) {
	job := func() *unstructured.Unstructured {
		return a.with(a.read(), "metadata.annotations", "n", strings.Repeat("x", 128<<10))
	}
	require.NoError(t, a.create(job()), "it is not queued")
	refused(t, a.create(a.with(job(), "metadata.labels", v1alpha1.LabelQuotaName, "quota-a")), tooMuch)
}

// The namespace allows numbers up to 100.
func (a *attack) prioritizes(t *testing.T) {
	const at = "metadata.annotations"
	for _, number := range []string{"101", "2000000000", "99999999999999999999", "+000000000000000000000101"} {
		refused(t, a.create(a.with(a.read(), at, v1alpha1.AnnotationPriority, number)),
			"alice may not give a job the priority "+number)
	}
	for _, number := range []string{"-2000000000", "0", "1", "+100", "000000000000000000000100", "no number"} {
		require.NoError(t, a.create(a.with(a.read(), at, v1alpha1.AnnotationPriority, number)), number)
	}
	job, err := a.admin.Create(t.Context(), a.with(a.read(), at, v1alpha1.AnnotationPriority, "101"),
		metav1.CreateOptions{})
	require.NoError(t, err, "an administrator")
	a.with(job, "metadata.labels", "a", "b")
	_, err = a.alice.Update(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err, "it may go on")
}

// A list in a list is as long as both.
func (a *attack) hasManyGroupsBelow(t *testing.T) {
	job := a.read()
	components, _, err := unstructured.NestedSlice(job.Object, "spec", "components")
	require.NoError(t, err)
	cluster := components[2].(map[string]any)
	groups, _, err := unstructured.NestedSlice(cluster, "template", "spec", "workerGroupSpecs")
	require.NoError(t, err)
	groups = slices.Repeat(groups[:1], 5000)
	require.NoError(t, unstructured.SetNestedSlice(cluster, groups, "template", "spec", "workerGroupSpecs"))
	require.NoError(t, unstructured.SetNestedSlice(job.Object, components, "spec", "components"))
	began := time.Now()
	require.ErrorContains(t, a.create(job), "it has more than 500 groups of pods")
	require.Less(t, time.Since(began), 5*time.Second)
}

// Another's quota cannot be hidden behind many groups of pods: either all are looked at, or the job is refused.
func (a *attack) hasManyGroups(t *testing.T) {
	last := a.labelled("spec.workerGroupSpecs.1.template.metadata", v1alpha1.LabelQuotaName, "quota-b")
	groups, _, err := unstructured.NestedSlice(last.Object, "spec", "workerGroupSpecs")
	require.NoError(t, err)
	with := func(groups []any) *unstructured.Unstructured {
		job := a.read()
		require.NoError(t, unstructured.SetNestedSlice(job.Object, groups, "spec", "workerGroupSpecs"))
		return job
	}
	const most = 500
	require.NoError(t, a.create(with(slices.Repeat(groups[:1], most))))
	refused(t, a.create(with(append(slices.Repeat(groups[:1], most-1), groups[1]))), "may use quota quota-b")
	began := time.Now()
	err = a.create(with(append(slices.Repeat(groups[:1], 10*most), groups[1])))
	require.ErrorContains(t, err, "it has more than 500 groups of pods")
	require.Less(t, time.Since(began), 5*time.Second)
}

// Another's quota cannot be hidden behind her own.
func (a *attack) namesTwo(t *testing.T) {
	last := a.metadata[len(a.metadata)-1]
	for _, quotas := range [][2]string{{"quota-a", "quota-b"}, {"quota-b", "quota-a"}} {
		job := a.with(a.labelled("metadata", v1alpha1.LabelQuotaName, quotas[0]), last+".labels",
			v1alpha1.LabelQuotaName, quotas[1])
		require.ErrorContains(t, a.create(job), "the object names several quotas: quota-")
	}
	job := a.with(a.labelled(last, v1alpha1.QueueNameKey, "queue-b"), "metadata.annotations",
		v1alpha1.QueueNameKey, "queue-a")
	require.ErrorContains(t, a.create(job), "several queues are named: queue-")
}

// isOfTrainer23 asks the definition of the release what it keeps of a patch: the policy has to look at all of that.
func (a *attack) isOfTrainer23(t *testing.T) {
	require.NoError(t, server.ApplyOperatorCRDs(t.Context(), controlplane.Trainer23, "trainjobs"))
	pod := patchedJob + "1.template.spec.template"
	wide := func() *unstructured.Unstructured {
		job := a.with(a.read(), pod+".spec", "nodeName", "node-a")
		a.with(job, pod+".spec", "terminationGracePeriodSeconds", int64(3601))
		return a.with(job, pod+".metadata", "finalizers", []any{"example.com/mine"})
	}
	var kept map[string]any
	require.Eventually(t, func() bool {
		job, err := a.admin.Create(t.Context(), wide(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false // the definition is not served yet
		}
		patches, _, _ := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
		jobs, _, _ := unstructured.NestedSlice(patches[1].(map[string]any), "trainingRuntimeSpec", "template", "spec",
			"replicatedJobs")
		kept, _, _ = unstructured.NestedMap(jobs[1].(map[string]any), "template", "spec", "template")
		_, still, _ := unstructured.NestedString(kept, "spec", "nodeName")
		return !still
	}, 30*time.Second, 100*time.Millisecond)
	require.Equal(t, map[string]any{
		"metadata": map[string]any{"finalizers": []any{"example.com/mine"}},
		"spec":     map[string]any{"terminationGracePeriodSeconds": int64(3601)},
	}, kept)
	for _, at := range a.metadata {
		if strings.HasPrefix(at, runtimePatch) {
			a.names(t, at)
		}
	}
	queued := func(at, key string, value any) *unstructured.Unstructured {
		return a.with(a.labelled("metadata", v1alpha1.LabelQuotaName, "quota-a"), at, key, value)
	}
	refused(t, a.create(queued(pod+".spec", "terminationGracePeriodSeconds", int64(3601))),
		"terminationGracePeriodSeconds is more than 3600")
	refused(t, a.create(queued(pod+".metadata", "finalizers", []any{"example.com/mine"})),
		"pods that name a quota have no finalizers")
}

// An account that is listed with this resource makes it of something that was checked.
func (a *attack) isMadeByAnOperator(t *testing.T) {
	const operator = "system:serviceaccount:operators:of-kinds"
	maps := gvr("", "v1", "configmaps")
	authors := clientOf(t, controlplane.Admin).Resource(maps).Namespace("koord-queue")
	job := a.labelled(a.metadata[len(a.metadata)-1], v1alpha1.LabelQuotaName, "quota-b")
	as := *a
	as.alice = tenantNamed(t, operator).dynamic.Resource(a.resource).Namespace("tenant-kinds")
	refused(t, as.create(job), "may use quota quota-b")
	list, err := authors.Get(t.Context(), "jobqueue-tenancy", metav1.GetOptions{})
	require.NoError(t, err)
	before, _, _ := unstructured.NestedString(list.Object, "data", "authors")
	require.NoError(t, unstructured.SetNestedField(list.Object,
		before+fmt.Sprintf("\n%s %s\n", operator, a.resource.Resource), "data", "authors"))
	_, err = authors.Update(t.Context(), list, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return as.create(job) == nil }, 30*time.Second, 100*time.Millisecond)
}

// writesKinds gives alice, and an operator, the right to write all of these, and to alice a quota and a queue.
func writesKinds(t *testing.T, namespace string) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	var rules []rbacv1.PolicyRule
	for _, kind := range attackedKinds {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{kind.resource.Group}, Resources: []string{kind.resource.Resource},
			Verbs: []string{"create", "update", "get"},
		})
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "writes-kinds"}
	_, err = admin.RbacV1().Roles(namespace).
		Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	alice := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}
	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{alice, {Kind: rbacv1.ServiceAccountKind, Namespace: "operators", Name: "of-kinds"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mayUse(t, admin, namespace, "a", alice)
	ns, err := admin.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	require.NoError(t, err)
	ns.Annotations = map[string]string{v1alpha1.AnnotationMaxPriority: "100"}
	_, err = admin.CoreV1().Namespaces().Update(t.Context(), ns, metav1.UpdateOptions{})
	require.NoError(t, err)
}
