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

package operators_test

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// jobKind is what the stories need to know of a kind; the facts that they check are theirs.
type jobKind struct {
	// name is the kind in lower case, and the file in test/harness/testjobs.
	name string
	// suspend is where the job is suspended.
	suspend []string
	// jobLabel of a pod has the name of its job, setLabel that of its replicas.
	jobLabel, setLabel string
	// pods that it has when all run, and those that are created only once others run.
	pods int
	// sets are the names of the replicas.
	sets []string
	// owners of a pod, from its controller upwards.
	owners []string
	// template is the JSON pointer to a template of pods, "" if the job has none.
	template string
	// child is what it makes its pods by, if not by itself.
	child schema.GroupVersionKind
	// managedBy is where it names its controller, own the name of the real one.
	managedBy []string
	own       string
	// running says whether the status says that all pods run, in which it may lag behind. nil: it never says so.
	running func(job *unstructured.Unstructured) bool
	// succeeded is the type of the condition of success.
	succeeded string
	// startTime says whether the status has one.
	startTime bool
	// otherOwners of some of its pods, in place of owners.
	otherOwners []string
	// decides is a part of the name of the container of the pods by which it ends; empty if all count.
	decides string
	// endless: it ends when it is deleted. keepsPods: what runs goes on while it is suspended.
	endless, keepsPods bool
	// early: some of what makes its pods is made before it is suspended, and is not changed afterwards.
	early bool
}

var (
	jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	batchJob   = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

func kubeflow(name, kind, template string, pods int, sets ...string) jobKind {
	return jobKind{
		name:      name,
		suspend:   []string{"spec", "runPolicy", "suspend"},
		jobLabel:  "training.kubeflow.org/job-name",
		setLabel:  "training.kubeflow.org/replica-type",
		pods:      pods,
		sets:      sets,
		owners:    []string{kind},
		template:  template,
		managedBy: []string{"spec", "runPolicy", "managedBy"},
		own:       "kubeflow.org/training-operator",
		running: func(job *unstructured.Unstructured) bool {
			return condition(job, "Running") == "True" && kubeflowActive(job) == int64(pods)
		},
		succeeded: "Succeeded",
		startTime: true,
	}
}

// kubeflowActive is the number of pods that run. The condition Running is older: it says that those run that decide.
func kubeflowActive(job *unstructured.Unstructured) int64 {
	statuses, _, _ := unstructured.NestedMap(job.Object, "status", "replicaStatuses")
	sum := int64(0)
	for _, status := range statuses {
		active, _, _ := unstructured.NestedInt64(status.(map[string]any), "active")
		sum += active
	}
	return sum
}

var jobKinds = []jobKind{
	kubeflow("pytorchjob", "PyTorchJob", "/spec/pytorchReplicaSpecs/Worker/template", 3, "master", "worker"),
	kubeflow("tfjob", "TFJob", "/spec/tfReplicaSpecs/Worker/template", 4, "chief", "ps", "worker"),
	kubeflow("xgboostjob", "XGBoostJob", "/spec/xgbReplicaSpecs/Worker/template", 3, "master", "worker"),
	kubeflow("paddlejob", "PaddleJob", "/spec/paddleReplicaSpecs/Worker/template", 3, "master", "worker"),
	kubeflow("jaxjob", "JAXJob", "/spec/jaxReplicaSpecs/Worker/template", 2, "worker"),
	kubeflow("mpijob", "MPIJob", "/spec/mpiReplicaSpecs/Worker/template", 3, "launcher", "worker"),
	{
		name:      "jobset",
		suspend:   []string{"spec", "suspend"},
		jobLabel:  "jobset.sigs.k8s.io/jobset-name",
		setLabel:  "jobset.sigs.k8s.io/replicatedjob-name",
		pods:      5,
		sets:      []string{"leader", "workers"},
		owners:    []string{"Job", "JobSet"},
		template:  "/spec/replicatedJobs/1/template/spec/template",
		child:     batchJob,
		managedBy: []string{"spec", "managedBy"},
		own:       "jobset.sigs.k8s.io/jobset-controller",
		running:   jobSetRuns,
		succeeded: "Completed",
	},
	{
		name:      "trainjob",
		suspend:   []string{"spec", "suspend"},
		jobLabel:  "jobset.sigs.k8s.io/jobset-name",
		setLabel:  "jobset.sigs.k8s.io/replicatedjob-name",
		pods:      3,
		sets:      []string{"node"},
		owners:    []string{"Job", "JobSet", "TrainJob"},
		child:     jobSetKind,
		managedBy: []string{"spec", "managedBy"},
		own:       "trainer.kubeflow.org/trainjob-controller",
		succeeded: "Complete",
	},
}

// jobSetRuns: the status of a JobSet counts Jobs whose pods are all ready, by replicated job.
func jobSetRuns(job *unstructured.Unstructured) bool {
	want := map[string]int64{}
	specs, _, _ := unstructured.NestedSlice(job.Object, "spec", "replicatedJobs")
	for _, s := range specs {
		s := s.(map[string]any)
		want[s["name"].(string)], _, _ = unstructured.NestedInt64(s, "replicas")
	}
	statuses, _, _ := unstructured.NestedSlice(job.Object, "status", "replicatedJobsStatus")
	for _, s := range statuses {
		s := s.(map[string]any)
		if ready, _, _ := unstructured.NestedInt64(s, "ready"); ready != want[s["name"].(string)] {
			return false
		}
	}
	return len(statuses) == len(specs)
}

// condition returns the status of a condition, "" if there is none of that type.
func condition(job *unstructured.Unstructured, conditionType string) string {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	i := slices.IndexFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == conditionType })
	if i < 0 {
		return ""
	}
	return conditions[i].(map[string]any)["status"].(string)
}

func hasCondition(conditionType, status string) func(*unstructured.Unstructured) bool {
	return func(job *unstructured.Unstructured) bool { return condition(job, conditionType) == status }
}

func startTime(job *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(job.Object, "status", "startTime")
	return value
}
