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
	"reflect"
	"strings"
	"testing"
	"time"
)

const config = `
queueconfig:
  scheduler: yunikorn
  queue: root.{{.Org}}.{{.Type}}
  user: "{{.Org}}.{{.User}}"
  jobs:
  - type: ray
    gangscheduling: "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard"
    allow-preemption: false
  - type: spark
    gangscheduling: "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Soft"
    allow-preemption: true
`

func TestConfig(t *testing.T) {
	c, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	ray, err := c.Job(&Submitter{Organization: "org1", User: "user1", Type: "ray", Groups: []string{"g"}})
	want := Job{
		Queue: "root.org1.ray", User: "org1.user1", Groups: []string{"g"}, NonPreemptible: true,
		Gang: &Gang{Timeout: time.Minute},
	}
	if err != nil || !reflect.DeepEqual(ray, want) {
		t.Errorf("have %+v %v, want %+v", ray, err, want)
	}
	spark, err := c.Job(&Submitter{Organization: "org1", User: "u", Type: "spark"})
	if err != nil || *spark.Gang != (Gang{Timeout: 30 * time.Second, Soft: true}) || spark.NonPreemptible {
		t.Errorf("have %+v %v", spark, err)
	}
	if other, err := c.Job(&Submitter{Organization: "org1", User: "u", Type: "dask"}); err != nil || other.Gang != nil {
		t.Errorf("have %+v %v", other, err)
	}
	// With a dot in the organization a user would name the queue of another one.
	for _, s := range []Submitter{
		{Organization: "org2.ray", User: "u", Type: "ray"}, {User: "u", Type: "ray"}, {Organization: "a\nb", User: "u", Type: "ray"},
		{Organization: "org1", User: "u v", Type: "ray"}, {Organization: "org1", User: "u", Type: "ray.x"},
	} {
		if job, err := c.Job(&s); err == nil {
			t.Errorf("%+v gives %+v", s, job)
		}
	}
}

// TestConfigMistakes: each is told with its field and its line.
func TestConfigMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "the text is empty",
		"x: {}":                              "line 1: x: invalid: no such field",
		"queueconfig: []":                    "line 1: queueconfig.: invalid: want an object",
		"queueconfig: {}":                    "line 1: queueconfig.scheduler: invalid: the field is needed",
		"queueconfig:\n  scheduler: x":       `line 2: queueconfig.scheduler: driver "x": invalid: want one of k8s, kai`,
		"queueconfig:\n  scheduler: kueue\n": "line 2: queueconfig.queue: invalid: kueue needs it",
		"queueconfig:\n  scheduler: k8s\n":   "line 2: queueconfig.scheduler: version of scheduling.k8s.io",
		"queueconfig:\n  scheduler: koord\n  kubernetes-api: v1beta1\n":    "line 2: queueconfig.scheduler: version of scheduling.k8s.io",
		"queueconfig:\n  scheduler: koord\n  scheduler: koord\n":           "line 3: queueconfig.scheduler: invalid: the field is there twice",
		"queueconfig:\n  scheduler: koord\n  queue: '{{.Nobody}}'\n":       "line 3: queueconfig.queue: invalid: no such field: {{.Nobody}}",
		"queueconfig:\n  scheduler: koord\n  queue: '{{.Org}'\n":           `line 3: queueconfig.queue: invalid: part "{{"`,
		"queueconfig:\n  scheduler: koord\n  queue: {a: b}\n":              "line 3: queueconfig.queue: invalid: want text",
		"queueconfig:\n  scheduler: scheduler-plugins\n  queue: a\n":       "line 3: queueconfig.queue: not supported by scheduler-plugins",
		"queueconfig:\n  scheduler: koord\n  jobs: x\n":                    "line 3: queueconfig.jobs: invalid: want a list",
		"queueconfig:\n  scheduler: koord\n  jobs:\n  - {}\n":              "line 4: queueconfig.jobs[0].type: invalid: the field is needed",
		"queueconfig:\n  scheduler: koord\n  jobs:\n  - type: a.b\n":       "line 4: queueconfig.jobs[0].type: invalid:",
		"queueconfig:\n  scheduler: koord\n  jobs: [{type: a}, {type: a}]": "line 3: queueconfig.jobs[1].type: invalid:",
		"queueconfig:\n  scheduler: koord\n  jobs:\n  - type: ray\n    allow-preemption: maybe\n": "line 5: queueconfig.jobs[0]" +
			".allow-preemption: invalid: want true or false",
		"queueconfig:\n  scheduler: kueue\n  queue: q\n  jobs:\n  - type: ray\n    allow-preemption: false\n": "line 6: " +
			"queueconfig.jobs[0].allow-preemption: false: not supported by kueue",
		"queueconfig:\n  scheduler: koord\n  jobs:\n  - type: ray\n    gangscheduling: timeout=3\n": "line 5: queueconfig.jobs[0]" +
			`.gangscheduling: gang parameter "timeout=3": invalid: want placeholderTimeoutInSeconds or gangSchedulingStyle`,
		"queueconfig:\n  scheduler: koord\n  jobs: &a [*a]\n": "line 3: queueconfig.jobs[0].: invalid: want an object",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have %v, want %s", text, err, want)
		}
	}
	_, err := ParseConfig([]byte("queueconfig:\n  scheduler: koord\n  x: 1\n  jobs:\n  - y: 2\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all mistakes are told: %v", err)
	}
}

func TestGang(t *testing.T) {
	for text, want := range map[string]string{
		"": "gangSchedulingStyle=Soft",
		"gangSchedulingStyle=Hard placeholderTimeoutInSeconds=30": "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard",
		"gangSchedulingStyle=hard":                                "",
		"placeholderTimeoutInSeconds=0":                           "",
		"placeholderTimeoutInSeconds=99999999999":                 "",
		"gangSchedulingStyle=Hard gangSchedulingStyle=Soft":       "",
	} {
		g, err := ParseGang(text)
		if (err == nil) != (want != "") || err == nil && g.String() != want {
			t.Errorf("%q: have %v %v, want %q", text, g, err, want)
		}
	}
}

// FuzzConfig: a configuration is read or refused, and what is read can be used.
func FuzzConfig(f *testing.F) {
	f.Add(config, "org1", "user1", "ray")
	f.Add("queueconfig: {scheduler: none, jobs: [{type: a, gangscheduling: ''}]}", "a.b", "", "a")
	f.Add("queueconfig: &x {scheduler: koord, jobs: [*x]}", "o", "u", "t")
	f.Fuzz(func(t *testing.T, text, organization, user, name string) {
		c, err := ParseConfig([]byte(text))
		if err != nil {
			return
		}
		job, err := c.Job(&Submitter{Organization: organization, User: user, Type: name})
		if err != nil {
			return
		}
		if dots := strings.Count(job.Queue, "."); dots != strings.Count(placeholder.ReplaceAllString(c.Queue, ""), ".") {
			t.Errorf("the queue %q has other parts than %q", job.Queue, c.Queue)
		}
		object := Object{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": Object{"name": "j"},
			"spec": Object{"template": Object{"spec": Object{"containers": []any{}}}},
		}
		label(t, c.Driver, job, object)
	})
}
