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

package flyte

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

const config = `
queueconfig:
  scheduler: SCHEDULER
  queue: "QUEUE"
  user: "{{.User}}"
  jobs:
  - {type: ray, gangscheduling: placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard}
  - {type: spark, gangscheduling: placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard}
  - {type: dask}
  - {type: pytorch, gangscheduling: gangSchedulingStyle=Hard}
  - {type: mpi, gangscheduling: gangSchedulingStyle=Hard}
  - {type: tensorflow, gangscheduling: gangSchedulingStyle=Hard}
`

func configOf(t *testing.T, scheduler, queue string) *submit.Config {
	t.Helper()
	c, err := submit.ParseConfig([]byte(strings.NewReplacer("SCHEDULER", scheduler, "QUEUE", queue).Replace(config)))
	require.NoError(t, err)
	return c
}

// built is a plugin of Flyte. Its resource has no name, and its namespace is chosen by others.
type built string

func (b built) BuildResource(context.Context, *Task) (client.Object, error) {
	text, err := os.ReadFile("../../pkg/submit/testdata/jobs/" + string(b) + ".yaml")
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	err = yaml.Unmarshal(text, &object.Object)
	object.SetName("")
	object.SetNamespace("")
	return object, err
}

var resources = map[string]built{
	"ray": "rayjob", "spark": "sparkapplication", "pytorch": "pytorchjob", "mpi": "mpijob", "tensorflow": "tfjob",
	"dask": "daskjob",
}

func taskOf(name string) *Task {
	return &Task{
		GeneratedName: "f1-n0-0", Namespace: "snacks-development",
		Submitter: submit.Submitter{Organization: "org1", User: "user1", Type: name},
		// The user tries to name the queue of somebody else.
		Labels: map[string]string{
			"yunikorn.apache.org/queue": "root.org2.ray", "kueue.x-k8s.io/queue-name": "org2-ray", "team": "snacks",
		},
	}
}

// The RFC's paths name quotas of Koordinator, too.
func TestAPathOfTheRFCIsThatOfAQuota(t *testing.T) {
	object, err := Wrap(resources["ray"], configOf(t, "koord", queues["yunikorn"])).
		BuildResource(t.Context(), taskOf("ray"))
	require.NoError(t, err)
	require.Equal(t, "root.org1.ray", object.GetAnnotations()["koord-queue/queue-path"])
	require.Equal(t, "ray", object.GetLabels()["quota.scheduling.koordinator.sh/name"])
}

// expected are the labels of the RFC's examples: a resource of user1 in org1 goes to root.org1.ray, or org1-ray.
func expected(scheduler, name string) map[string]string {
	if scheduler == "yunikorn" {
		return map[string]string{
			"yunikorn.apache.org/queue": "root.org1." + name, "yunikorn.apache.org/app-id": "snacks-development.f1-n0-0",
		}
	}
	return map[string]string{"kueue.x-k8s.io/queue-name": "org1-" + name}
}

var queues = map[string]string{"yunikorn": "root.{{.Organization}}.{{.Type}}", "kueue": "{{.Organization}}-{{.Type}}"}

func TestTheFlowOfTheRFC(t *testing.T) {
	for scheduler, queue := range queues {
		for name, resource := range resources {
			var created client.Object
			m := &Manager{
				Plugin: resource, Schedule: Scheduler{configOf(t, scheduler, queue)},
				Create: func(_ context.Context, object client.Object) error { created = object; return nil },
			}
			require.NoError(t, m.launchResource(t.Context(), taskOf(name)))
			for key, value := range expected(scheduler, name) {
				require.Equal(t, value, created.GetLabels()[key], "%s %s", scheduler, name)
			}
			require.Equal(t, "snacks", created.GetLabels()["team"])
			checkPods(t, scheduler, name, created)

			// A retry launches the same resource.
			first := created
			require.NoError(t, m.launchResource(t.Context(), taskOf(name)))
			require.Equal(t, first, created)
		}
	}
}

func TestTheDecoratorWorksWithoutAChangeOfFlyte(t *testing.T) {
	for scheduler, queue := range queues {
		for name, resource := range resources {
			c := configOf(t, scheduler, queue)
			object, err := Wrap(resource, c).BuildResource(t.Context(), taskOf(name))
			require.NoError(t, err)
			for key, value := range expected(scheduler, name) {
				require.Equal(t, value, object.GetLabels()[key], "%s %s", scheduler, name)
			}
			checkPods(t, scheduler, name, object)
			task := taskOf(name)
			task.Submitter.Organization = "org2.ray"
			_, err = Wrap(resource, c).BuildResource(t.Context(), task)
			require.ErrorIs(t, err, submit.ErrInvalid)
		}
	}
}

// A PodGroup that nobody creates would keep the pods pending.
func TestTheDecoratorRefusesGroupObjects(t *testing.T) {
	_, err := Wrap(resources["ray"], configOf(t, "volcano", "team")).BuildResource(t.Context(), taskOf("ray"))
	require.ErrorIs(t, err, submit.ErrUnsupported)
}

// checkPods: YuniKorn reads the pods. Those of a DaskJob have what the object has.
func checkPods(t *testing.T, scheduler, name string, object client.Object) {
	t.Helper()
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	if scheduler == "kueue" {
		suspended := strings.Count(string(text), "suspend: true")
		require.Equal(t, map[bool]int{true: 0, false: 1}[name == "dask"], suspended, name)
		return
	}
	fields, err := submit.ObjectOf(object)
	require.NoError(t, err)
	sets, err := submit.PodSets(fields)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(sets), 2, name)
	for i := range sets {
		labels, _, err := unstructured.NestedStringMap(sets[i].Template, "metadata", "labels")
		require.NoError(t, err)
		require.Equal(t, "root.org1."+name, labels["yunikorn.apache.org/queue"], "%s: %s", name, sets[i].Name)
	}
	groups := strings.Count(string(text), "yunikorn.apache.org/task-groups")
	require.Equal(t, name != "dask", groups > 0, name)
}

func TestGroupLabels(t *testing.T) {
	object, err := resources["ray"].BuildResource(t.Context(), nil)
	require.NoError(t, err)
	task := taskOf("ray")
	addObjectMetadata(task, object)
	got, err := Scheduler{configOf(t, "yunikorn", queues["yunikorn"])}.GetGroupLabels(task, object, "head")
	require.NoError(t, err)
	require.Equal(t, "head", got.Annotations["yunikorn.apache.org/task-group-name"])
	require.Equal(t, "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard",
		got.Annotations["yunikorn.apache.org/schedulingPolicyParameters"])
}
