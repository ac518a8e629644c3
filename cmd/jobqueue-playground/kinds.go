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

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/testjobs"
)

// jobKind is a kind of the mixed workload. It has the facts that the checks need, so that they do not depend on the
// product.
type jobKind struct {
	schema.GroupVersionKind
	// file of test/harness/testjobs; "" for Jobs, which are made as in the demo without kinds.
	file string
	// rights is its directory of manifests/components/kinds, suspend where it is suspended.
	rights  string
	suspend []string
	// pods of one job, and how many of them have to succeed; with 0 all.
	pods, deciding int
	// operator makes its pods.
	operator controlplane.Component
}

// played says that the stand-in does what the operator of the kind would do.
func (k *jobKind) played() bool { return k.operator == controlplane.StandIn }

func (k *jobKind) resource() schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return plural
}

// String is what the configuration calls it.
func (k *jobKind) String() string { return k.Kind + "." + k.Version + "." + k.Group }

func kubeflow(kind, rights string, pods, deciding int) jobKind {
	return jobKind{
		GroupVersionKind: schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: kind},
		rights:           rights, suspend: []string{"spec", "runPolicy", "suspend"}, pods: pods, deciding: deciding,
		operator: controlplane.TrainingOperator,
	}
}

// mixedKinds are the kinds of the mixed workload, in the order of the table.
func mixedKinds() []jobKind {
	suspend := []string{"spec", "suspend"}
	kinds := []jobKind{
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
			rights:           "job", operator: controlplane.ControllerManager,
		},
		// The first pod decides where there is a master, chief or launcher.
		kubeflow("PyTorchJob", "pytorchjob", 3, 1),
		kubeflow("TFJob", "tfjob", 4, 1),
		kubeflow("XGBoostJob", "xgboostjob", 3, 1),
		kubeflow("PaddleJob", "paddlejob", 3, 1),
		kubeflow("JAXJob", "jaxjob", 2, 0),
		kubeflow("MPIJob", "mpijob-v1", 3, 1),
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
			rights:           "jobset", suspend: suspend, pods: 5, operator: controlplane.JobSet,
		},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
			rights:           "trainjob", suspend: suspend, pods: 3, operator: controlplane.Trainer,
		},
		// Its submitter decides.
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"},
			rights:           "rayjob", suspend: suspend, pods: 3, deciding: 1, operator: controlplane.KubeRay,
		},
		// Its driver decides.
		{
			GroupVersionKind: schema.GroupVersionKind{
				Group: "sparkoperator.k8s.io", Version: "v1beta2", Kind: "SparkApplication",
			},
			rights: "sparkapplication", suspend: suspend, pods: 3, deciding: 1, operator: controlplane.StandIn,
		},
	}
	for i := range kinds {
		if kinds[i].suspend != nil {
			kinds[i].file = strings.ToLower(kinds[i].Kind)
		}
	}
	return kinds
}

// followed are the resources in addition to Jobs and Pods that the checks have to see: jobs, and what stands between
// them and their pods.
func followed() []schema.GroupResource {
	resources := []schema.GroupResource{{Group: "ray.io", Resource: "rayclusters"}}
	for _, kind := range mixedKinds() {
		if kind.file != "" {
			resources = append(resources, kind.resource().GroupResource())
		}
	}
	return resources
}

const (
	// mixedJobs is how many jobs the mixed workload has if nobody says otherwise: eight of each kind.
	mixedJobs = 88
	// mixedInterval is the mean time between two of them.
	mixedInterval = 400 * time.Millisecond
	// runtimeOfTrainJobs is how long the pods of TrainJobs run: it is in the TrainingRuntime that they share.
	runtimeOfTrainJobs = 8 * time.Second
	// ephemeralStorage of nodes: the operator has the launcher of an MPIJob ask for some.
	ephemeralStorage = "100Gi"
)

// startOperators has all kinds of the mixed workload managed, and starts what makes their pods.
func startOperators(ctx context.Context, cp *controlplane.ControlPlane, step func(string)) error {
	var managed []controlplane.Kind
	for _, kind := range mixedKinds() {
		managed = append(managed, controlplane.Kind{Name: kind.String(), Rights: kind.rights})
	}
	if err := cp.ManageKinds(ctx, managed...); err != nil {
		return fmt.Errorf("switch on the kinds: %w", err)
	}
	step(fmt.Sprintf("switched on %d kinds of jobs, with the rights of manifests/components/kinds", len(managed)))
	for _, operator := range controlplane.Operators() {
		if err := cp.StartOperator(ctx, operator, controlplane.OperatorOptions{}); err != nil {
			return err
		}
		step("started " + string(operator))
	}
	if err := cp.StartStandIn(ctx, "sparkapplication"); err != nil {
		return err
	}
	step("started a stand-in that plays the operator of SparkApplication")
	return nil
}

// needs are the objects that jobs of the mixed workload name, in each namespace of the scenario.
func needs() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	namespaces := map[string]bool{}
	for _, s := range streams() {
		if namespaces[s.namespace] {
			continue
		}
		namespaces[s.namespace] = true
		for _, kind := range mixedKinds() {
			if kind.file == "" {
				continue
			}
			others, _, err := testjobs.Read(kind.file)
			if err != nil {
				return nil, err
			}
			for _, other := range others {
				other.SetNamespace(s.namespace)
				sized{runTime: runtimeOfTrainJobs, priority: "normal", times: 1}.edit(other.Object)
				all = append(all, other)
			}
		}
	}
	return all, nil
}

// mixedWorkload returns n jobs of all kinds in turn, of mixed size, priority and run time; the same seed gives the same
// jobs.
func mixedWorkload(n int, seed uint64) ([]cases.Submission, error) {
	random := rand.New(rand.NewPCG(seed, seed))
	lots, kinds := weighted(), mixedKinds()
	all := make([]cases.Submission, 0, n)
	for i := range n {
		next, err := newOfKind(&kinds[i%len(kinds)], lots[random.IntN(len(lots))], i, random)
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

func newOfKind(kind *jobKind, s stream, i int, random *rand.Rand) (cases.Submission, error) {
	if kind.file == "" {
		return cases.SubmissionOf(newJob(s, i, random))
	}
	_, job, err := testjobs.Read(kind.file)
	if err != nil {
		return cases.Submission{}, err
	}
	job.SetName(fmt.Sprintf("%s-%04d", kind.file, i))
	job.SetNamespace(s.namespace)
	job.SetLabels(map[string]string{v1alpha1.LabelQuotaName: s.quota})
	if s.named {
		job.SetAnnotations(map[string]string{v1alpha1.QueueNameKey: s.queue})
	}
	sized{
		runTime:  time.Duration(5000+random.IntN(10000)) * time.Millisecond,
		priority: []string{"low", "normal", "normal", "high"}[random.IntN(4)],
		times:    []int64{5, 10, 15}[random.IntN(3)],
	}.edit(job.Object)
	// As with Jobs, some forget.
	suspended := random.IntN(10) > 0
	if err := unstructured.SetNestedField(job.Object, suspended, kind.suspend...); err != nil {
		return cases.Submission{}, fmt.Errorf("suspend %s: %w", job.GetName(), err)
	}
	return cases.Submission{Object: job, Resource: kind.resource(), Pods: kind.pods}, nil
}

// sized is what differs between the jobs of a kind.
type sized struct {
	runTime  time.Duration
	priority string
	// times is how much more CPU they ask for than the example.
	times int64
}

// edit writes it wherever an object has a place for it: templates of pods are at other places in each kind.
func (s sized) edit(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			s.edit(element)
		}
	case map[string]any:
		if _, template := value["containers"]; template {
			value["priorityClassName"] = s.priority
		}
		for key, field := range value {
			switch text, _ := field.(string); {
			case key == controlplane.RunTimeAnnotation:
				value[key] = s.runTime.String()
			case (key == "cpu" || key == "coreRequest") && text != "":
				amount := resource.MustParse(text)
				amount.Mul(s.times)
				value[key] = amount.String()
			default:
				s.edit(field)
			}
		}
	}
}
