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

package submit

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

func TestNew(t *testing.T) {
	for name, o := range map[string]Options{
		"no driver": {}, "unknown": {Driver: "slurm"}, "k8s without its version": {Driver: "k8s"},
		"another version":    {Driver: "k8s", KubernetesAPI: "v1"},
		"version of koord":   {Driver: "koord", KubernetesAPI: "v1beta1"},
		"scheduler of kueue": {Driver: "kueue", SchedulerName: "x"}, "no name": {Driver: "koord", SchedulerName: "A b"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestRefused jobs: each error says which kind it is.
func TestRefused(t *testing.T) {
	const rayjob = "testdata/jobs/rayjob.yaml"
	for name, c := range map[string]struct {
		driver, file string
		job          Job
		change       func(Object)
		want         error
	}{
		"queue of no label":   {"koord", rayjob, Job{Queue: strings.Repeat("x", 64)}, nil, ErrInvalid},
		"path beyond bounds":  {"koord", rayjob, Job{Queue: "root.a.b.c.d.e.f.g.h"}, nil, ErrInvalid},
		"long path":           {"koord", rayjob, Job{Queue: "root.x" + strings.Repeat("y", 250)}, nil, ErrInvalid},
		"path of capitals":    {"koord", rayjob, Job{Queue: "root.Org_1.ray"}, nil, ErrInvalid},
		"path with a hole":    {"koord", rayjob, Job{Queue: "root..ray"}, nil, ErrInvalid},
		"path and quota":      {"koord", rayjob, Job{Queue: "root.org1.ray", Quota: "ray"}, nil, ErrInvalid},
		"queue with a space":  {"yunikorn", rayjob, Job{Queue: "root.a b"}, nil, ErrInvalid},
		"empty part of queue": {"yunikorn", rayjob, Job{Queue: "root..b"}, nil, ErrInvalid},
		"kueue without queue": {"kueue", rayjob, Job{}, nil, ErrInvalid},
		"quotas of kueue":     {"kueue", rayjob, Job{Queue: "q", Quotas: []string{"a"}}, nil, ErrUnsupported},
		"quota and quotas":    {"koord", rayjob, Job{Quota: "a", Quotas: []string{"a", "b"}}, nil, ErrInvalid},
		"a quota twice":       {"koord", rayjob, Job{Quotas: []string{"a", "b", "a"}}, nil, ErrInvalid},
		"quotas and path":     {"koord", rayjob, Job{Queue: "root.a", Quotas: []string{"a", "b"}}, nil, ErrInvalid},
		"two in one":          {"koord", rayjob, Job{Quotas: []string{"a", "b,c"}}, nil, ErrInvalid},
		"quota of kueue":      {"kueue", rayjob, Job{Queue: "q", Quota: "a"}, nil, ErrUnsupported},
		"user with newline":   {"yunikorn", rayjob, Job{User: "a\nb"}, nil, ErrInvalid},
		"many groups":         {"yunikorn", rayjob, Job{User: "a", Groups: make([]string, 65)}, nil, ErrInvalid},
		"half a second":       {"koord", rayjob, Job{MaxRunTime: time.Second / 2}, nil, ErrInvalid},
		"priority of koord":   {"koord", rayjob, Job{PriorityClass: "high"}, nil, ErrUnsupported},
		"group of a RayJob":   {"kueue", rayjob, Job{Queue: "q", PodGroup: &PodGroup{"g", 2}}, nil, ErrInvalid},
		"other scheduler": {"koord", "testdata/jobs/job.yaml", Job{}, func(o Object) {
			_ = writeField(o, podset.PathOf(".spec.template.spec.schedulerName"), "volcano")
		}, ErrConflict},
		"gang that may shrink": {"koord", "testdata/jobs/job.yaml", Job{Gang: &Gang{}}, func(o Object) {
			_ = writeField(o, podset.Path{"metadata", "annotations", "koord-queue/min-parallelism"}, "1")
		}, ErrConflict},
		"cluster that stays": {"koord", rayjob, Job{}, func(o Object) {
			_ = writeField(o, podset.PathOf(".spec.shutdownAfterJobFinishes"), false)
		}, ErrInvalid},
		"suspended in a cluster of others": {"koord", rayjob, Job{}, func(o Object) {
			o["spec"] = Object{"clusterSelector": Object{"ray.io/cluster": "b"}, "suspend": true}
		}, ErrInvalid},
		"no name":      {"koord", rayjob, Job{}, func(o Object) { delete(o, "metadata") }, ErrInvalid},
		"unknown kind": {"koord", rayjob, Job{}, func(o Object) { o["kind"] = "RayService" }, ErrUnknownKind},
		"amount of much time": {"yunikorn", "testdata/jobs/job.yaml", Job{Gang: &Gang{}}, func(o Object) {
			_ = writeField(o, podset.PathOf(".spec.template.spec.overhead"), Object{"cpu": "1e99999999"})
		}, podset.ErrMalformed},
		"metadata of no object": {"koord", "testdata/jobs/job.yaml", Job{Queue: "q"}, func(o Object) {
			_ = writeField(o, podset.PathOf(".spec.template.metadata"), "x")
		}, podset.ErrMalformed},
	} {
		object := readObject(t, c.file)
		if c.change != nil {
			c.change(object)
		}
		if _, _, err := driverOf(t, c.driver).Label(c.job, object); !errors.Is(err, c.want) {
			t.Errorf("%s: have %v, want %v", name, err, c.want)
		}
	}
}

// TestGuestsAreNotSuspended: KubeRay fails a suspended RayJob that runs in a cluster of others.
func TestGuestsAreNotSuspended(t *testing.T) {
	object := readObject(t, "testdata/jobs/rayjob.yaml")
	object["spec"] = Object{"clusterSelector": Object{"ray.io/cluster": "b"},
		"submitterPodTemplate": Object{"spec": Object{"containers": []any{}}}}
	labelled, _, err := driverOf(t, "koord").Label(Job{Quota: "a"}, object)
	if err != nil {
		t.Fatal(err)
	}
	if suspended, _ := podset.Lookup(labelled, podset.PathOf(".spec.suspend")).(bool); suspended {
		t.Error("it is suspended")
	}
	at := podset.Path{"spec", "submitterPodTemplate", "metadata", "labels", "quota.scheduling.koordinator.sh/name"}
	if podset.Lookup(labelled, at) != "a" {
		t.Errorf("its submitter is not charged: %v", labelled)
	}
}

// TestNamesOfTwoJobsDiffer: YuniKorn knows no namespaces, and labels have 63 bytes.
func TestNamesOfTwoJobsDiffer(t *testing.T) {
	long := strings.Repeat("x", 200)
	seen := map[string]string{}
	for _, c := range [][2]string{
		{"a", "b-c"}, {"a-b", "c"}, {"a", "b.c"}, {"a", long + "1"}, {"a", long + "2"}, {"b", long + "1"},
	} {
		object := readObject(t, "testdata/jobs/job.yaml")
		object["metadata"] = Object{"namespace": c[0], "name": c[1]}
		labelled, err := driverOf(t, "yunikorn").CreateLabels(Job{}, object)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := podset.Lookup(labelled, podset.Path{"metadata", "labels", "yunikorn.apache.org/app-id"}).(string)
		if other, twice := seen[id]; twice || id == "" || len(id) > 63 {
			t.Errorf("%v and %s are %q", c, other, id)
		}
		seen[id] = c[1]
	}
}

// TestUsersChooseNoQueue: values of the platform replace those of the user.
func TestUsersChooseNoQueue(t *testing.T) {
	for _, name := range []string{"koord", "kueue", "yunikorn", "volcano", "kai"} {
		d := driverOf(t, name)
		job := fullJob(d)
		clean, _, err := d.Label(job, readObject(t, "testdata/jobs/job.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		forged := fullJob(d)
		forged.Queue = "root.foreign"
		if name == "kueue" || name == "koord" {
			forged.Queue = "foreign"
		}
		object, _, err := d.Label(forged, readObject(t, "testdata/jobs/job.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if object, _, err = d.Label(job, object); err != nil || !reflect.DeepEqual(clean, object) {
			t.Errorf("%s: have %v %v, want %v", name, object, err, clean)
		}
	}
}

// TestKoordNamesAQuotaByItsPath, with the quota on the pods: not every kind of pods can get it later.
func TestKoordNamesAQuotaByItsPath(t *testing.T) {
	const path = "root.org1.ray"
	for _, file := range []string{"job", "rayjob", "trainjob", "daskjob"} {
		labelled, _, err := driverOf(t, "koord").Label(Job{Queue: path}, readObject(t, "testdata/jobs/"+file+".yaml"))
		if err != nil {
			t.Fatal(file, err)
		}
		annotations := podset.StringMap(podset.Lookup(labelled, podset.PathOf(".metadata.annotations")))
		labels := podset.StringMap(podset.Lookup(labelled, podset.PathOf(".metadata.labels")))
		if annotations[koordPath] != path || labels[koordQuota] != "ray" || labels[koordQueue] != "" {
			t.Errorf("%s: have %v %v", file, labels, annotations)
		}
		sets, err := PodSets(labelled)
		if err != nil {
			t.Fatal(file, err)
		}
		for i := range sets {
			labels := podset.StringMap(podset.Lookup(sets[i].Template, podset.PathOf(".metadata.labels")))
			if sets[i].writable() && labels[koordQuota] != "ray" {
				t.Errorf("%s: %s has %v", file, sets[i].Name, labels)
			}
		}
	}
	long := "root." + strings.Repeat("o", 60) + ".ray"
	if _, _, err := driverOf(t, "koord").Label(Job{Queue: long}, readObject(t, "testdata/jobs/job.yaml")); err != nil {
		t.Errorf("a path may be longer than a label: %v", err)
	}
}

// TestUsersChooseNoQueueOfKoord, whatever key of the queue they know.
func TestUsersChooseNoQueueOfKoord(t *testing.T) {
	d := driverOf(t, "koord")
	for _, queue := range []string{"team-ray", "root.org1.ray"} {
		clean, _, err := d.Label(Job{Queue: queue}, readObject(t, "testdata/jobs/job.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{koordPath, koordQueue, koordQuotas} {
			for _, at := range []string{
				".metadata.labels", ".metadata.annotations", ".spec.template.metadata.labels",
				".spec.template.metadata.annotations",
			} {
				forged := readObject(t, "testdata/jobs/job.yaml")
				if err := writeMap(forged, podset.PathOf(at), map[string]string{key: "root.foreign"}); err != nil {
					t.Fatal(err)
				}
				object, _, err := d.Label(Job{Queue: queue}, forged)
				if err != nil || strings.Contains(fmt.Sprint(object), "foreign") {
					t.Errorf("%s at %s of a job in %s: have %v %v, want %v", key, at, queue, object, err, clean)
				}
			}
		}
	}
}

// Pods get the label of the quota that is chosen, so templates have none, whatever a user wrote there.
func TestSeveralQuotasOfKoord(t *testing.T) {
	object := readObject(t, "testdata/jobs/job.yaml")
	template := podset.PathOf(".spec.template.metadata.labels")
	if err := writeMap(object, template, map[string]string{koordQuota: "foreign"}); err != nil {
		t.Fatal(err)
	}
	job := Job{Queue: "cards", Quotas: []string{"a100", "h800"}}
	labelled, _, err := driverOf(t, "koord").Label(job, object)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]map[string]any{
		".metadata.labels":      {koordQuota: "a100", koordQueue: "cards"},
		".metadata.annotations": {koordQuotas: "a100,h800"},
	} {
		have, _ := podset.Lookup(labelled, podset.PathOf(at)).(Object)
		for key, value := range want {
			if have[key] != value {
				t.Errorf("%s at %s: have %v, want %v", key, at, have[key], value)
			}
		}
	}
	if labels, _ := podset.Lookup(labelled, template).(Object); labels[koordQuota] != nil {
		t.Errorf("the template names quota %v", labels[koordQuota])
	}
}

func TestTypedObjects(t *testing.T) {
	type job struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Parallelism int64          `json:"parallelism"`
			Factor      float64        `json:"factor"`
			Template    map[string]any `json:"template"`
		} `json:"spec"`
	}
	in := job{APIVersion: "batch/v1", Kind: "Job"}
	in.Spec.Parallelism, in.Spec.Factor = 1<<53+1, 0.5
	object, err := ObjectOf(&in)
	if err != nil {
		t.Fatal(err)
	}
	if n := podset.Lookup(object, podset.PathOf(".spec.parallelism")); n != int64(1<<53+1) {
		t.Errorf("have %T %v", n, n)
	}
	var out job
	if err := Into(object, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("have %+v %v", out, err)
	}
}

// train is a kind that only its users know. One expression is beyond what the library reads.
const train = `
apiVersion: example.com/v1
kind: Train
resource: trains
suspend: {field: .spec.paused}
podSets:
- {name: cars, path: .spec, count: [{field: .cars}], template: .template, later: %s}
state: {}
pods: {label: example.com/train}
`

// TestDescribedKinds: a description makes a kind known, and takes the place of a built-in kind.
func TestDescribedKinds(t *testing.T) {
	object := Object{"apiVersion": "example.com/v1", "kind": "Train", "metadata": Object{"name": "t"},
		"spec": Object{"cars": int64(2), "template": Object{"spec": Object{}}}}
	if _, _, err := driverOf(t, "koord").Label(Job{Quota: "a"}, object); !errors.Is(err, ErrUnknownKind) {
		t.Errorf("without a description: %v", err)
	}
	if _, err := ReadKind([]byte("kind: Train"), nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("without an apiVersion: %v", err)
	}
	rich := fmt.Sprintf(train, "size(self.spec) > 1")
	if _, err := ReadKind([]byte(rich), nil); err == nil {
		t.Error("an expression that the library cannot read is no error")
	}
	never := func(string) (*podset.Condition, error) { return nil, nil }
	for _, c := range []struct {
		text    string
		compile func(string) (*podset.Condition, error)
	}{{fmt.Sprintf(train, "'false'"), nil}, {rich, never}} {
		kind, err := ReadKind([]byte(c.text), c.compile)
		if err != nil {
			t.Fatal(err)
		}
		driver, err := New(Options{Driver: "koord", Kinds: []Kind{kind}})
		if err != nil {
			t.Fatal(err)
		}
		labelled, _, err := driver.Label(Job{Quota: "a"}, object)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]any{
			".spec.paused": true, ".spec.template.spec.schedulerName": "koord-scheduler",
		} {
			if have := podset.Lookup(labelled, podset.PathOf(path)); have != want {
				t.Errorf("%s: have %v, want %v", path, have, want)
			}
		}
		at := podset.Path{"spec", "template", "metadata", "labels", koordQuota}
		if podset.Lookup(labelled, at) != "a" {
			t.Errorf("its pods are not charged: %v", labelled)
		}
	}
}

// TestANameOfTheServer: the object may leave its name to the API server, unless the name is a part of what is written.
func TestANameOfTheServer(t *testing.T) {
	object := readObject(t, "testdata/jobs/job.yaml")
	object["metadata"] = Object{"generateName": "train-"}
	for driver, jobs := range map[string]map[error]Job{
		"koord":    {nil: {Quota: "a"}, ErrInvalid: {Quota: "a", Gang: &Gang{}}},
		"kueue":    {nil: {Queue: "a"}},
		"yunikorn": {ErrInvalid: {Queue: "root.a"}},
	} {
		for want, job := range jobs {
			if _, _, err := driverOf(t, driver).Label(job, object); !errors.Is(err, want) {
				t.Errorf("%s: have %v, want %v", driver, err, want)
			}
		}
	}
	object["metadata"] = Object{"generateName": "Train_"}
	if _, _, err := driverOf(t, "koord").Label(Job{}, object); !errors.Is(err, ErrInvalid) {
		t.Errorf("have %v, want %v", err, ErrInvalid)
	}
}

// TestAQueueWithoutAQuota: the quota is that of the namespace.
func TestAQueueWithoutAQuota(t *testing.T) {
	object := readObject(t, "testdata/jobs/job.yaml")
	labelled, _, err := driverOf(t, "koord").Label(Job{Queue: "express", NoQuota: true}, object)
	if err != nil {
		t.Fatal(err)
	}
	have := podset.StringMap(podset.Lookup(labelled, podset.PathOf(".metadata.labels")))
	if have[koordQueue] != "express" || have[koordQuota] != "" {
		t.Errorf("labels: %v", have)
	}
	for driver, job := range map[string]Job{
		"koord": {Queue: "express", Quota: "a", NoQuota: true}, "kueue": {Queue: "express", NoQuota: true},
	} {
		if _, _, err := driverOf(t, driver).Label(job, object); err == nil {
			t.Errorf("%s: no error", driver)
		}
	}
}
