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
  queue: root.{{.Organization}}.{{.Type}}
  user: "{{.Organization}}.{{.User}}"
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
		{Organization: "org2.ray", User: "u", Type: "ray"}, {User: "u", Type: "ray"},
		{Organization: "a\nb", User: "u", Type: "ray"},
		{Organization: "org1", User: "u v", Type: "ray"}, {Organization: "org1", User: "u", Type: "ray.x"},
	} {
		if job, err := c.Job(&s); err == nil {
			t.Errorf("%+v gives %+v", s, job)
		}
	}
}

// TestConfigMistakes: each is told with its field and its line.
func TestConfigMistakes(t *testing.T) {
	const koord = "scheduler: koord\n"
	for _, c := range []struct{ text, want string }{
		// Below queueconfig, which is line 1; fields are named from there.
		{"[]", "line 2: : invalid: want an object"},
		{"{}", "line 2: scheduler: invalid: the field is needed"},
		{"scheduler: x", `line 2: scheduler: driver "x": invalid: want one of k8s, kai`},
		{"scheduler: kueue", "line 2: queue: invalid: kueue needs it"},
		{"scheduler: k8s", "line 2: scheduler: version of scheduling.k8s.io"},
		{koord + "kubernetes-api: v1beta1", "line 2: scheduler: version of scheduling.k8s.io"},
		{koord + koord, "line 3: scheduler: invalid: the field is there twice"},
		{koord + "queue: '{{.Nobody}}'", "line 3: queue: invalid: no such field: {{.Nobody}}"},
		{koord + "queue: '{{.Org}'", `line 3: queue: invalid: part "{{"`},
		{koord + "queue: {a: b}", "line 3: queue: invalid: want text"},
		{"scheduler: scheduler-plugins\nqueue: a", "line 3: queue: not supported by scheduler-plugins"},
		{koord + "jobs: x", "line 3: jobs: invalid: want a list"},
		{koord + "jobs:\n- {}", "line 4: jobs[0].type: invalid: the field is needed"},
		{koord + "jobs:\n- type: a.b", "line 4: jobs[0].type: invalid:"},
		{koord + "jobs: [{type: a}, {type: a}]", "line 3: jobs[1].type: invalid:"},
		{koord + "jobs: &a [*a]", "line 3: jobs[0].: invalid: want an object"},
		{
			koord + "jobs:\n- type: ray\n  allow-preemption: maybe",
			"line 5: jobs[0].allow-preemption: invalid: want true or false",
		},
		{
			"scheduler: kueue\nqueue: q\njobs:\n- type: ray\n  allow-preemption: false",
			"line 6: jobs[0].allow-preemption: false: not supported by kueue",
		},
		{
			koord + "jobs:\n- type: ray\n  gangscheduling: timeout=3",
			`line 5: jobs[0].gangscheduling: gang parameter "timeout=3": invalid: want placeholderTimeoutInSeconds or`,
		},
	} {
		text := "queueconfig:\n  " + strings.ReplaceAll(c.text, "\n", "\n  ")
		_, err := ParseConfig([]byte(text))
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "queueconfig.", ""), c.want) {
			t.Errorf("%q: have %v, want %s", text, err, c.want)
		}
	}
	for text, want := range map[string]string{"": "the text is empty", "x: {}": "line 1: x: invalid: no such field"} {
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
