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
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// Below testdata/jobs are objects as their documentation has them. testdata/golden says what each driver adds:
//
//	go test . -run TestGolden -golden
var golden = flag.Bool("golden", false, "write testdata/golden anew")

// driverOf has the options that a driver needs.
func driverOf(t testing.TB, name string) Driver {
	t.Helper()
	o := Options{Driver: name}
	if name == "k8s" {
		o.KubernetesAPI = "v1beta1"
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fullJob says all that the driver supports.
func fullJob(d Driver) Job {
	job := Job{
		User: "user1", Groups: []string{"org1"}, NonPreemptible: d.nonPreemptible,
		Gang: &Gang{Timeout: time.Minute},
	}
	if d.queues {
		job.Queue = "team-ray"
	}
	if d.Driver == "yunikorn" {
		job.Queue = "root.org1.ray"
	}
	if d.priorities {
		job.PriorityClass = "high"
	}
	if d.limits {
		job.MaxRunTime = time.Hour
	}
	return job
}

func readObject(t testing.TB, file string) Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	object := Object{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func objectFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/jobs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

func TestGolden(t *testing.T) {
	for _, file := range objectFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			for _, name := range Drivers() {
				d := driverOf(t, name)
				job := fullJob(d)
				object := readObject(t, file)
				if object["kind"] == "Pod" && d.podGroups {
					job.PodGroup = &PodGroup{Name: "dask", Size: 3}
				}
				fmt.Fprintf(&out, "== %s\n", name)
				labelled, groups, err := d.Label(job, object)
				if err != nil {
					fmt.Fprintf(&out, "error: %v\n", err)
					continue
				}
				out.WriteString(added(object, labelled))
				for _, group := range groups {
					text, err := yaml.Marshal(group)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&out, "---\n%s", text)
				}
			}
			path := filepath.Join("testdata/golden", name+".txt")
			if *golden {
				if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != out.String() {
				t.Errorf("%s differs; have\n%s", path, out.String())
			}
		})
	}
}

// added are the fields that b has and a has not, or not so, each with the places where it is.
func added(a, b Object) string {
	before, after := map[string]string{}, map[string]string{}
	flatten("", a, before)
	flatten("", b, after)
	places := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if have, ok := before[path]; ok && have == after[path] {
			continue
		}
		place, field, nested := strings.Cut(path, ".template.")
		if !nested {
			place, field = "", path[1:]
		}
		line := field + " = " + after[path]
		places[line] = append(places[line], place)
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			places[path+" is gone"] = nil
		}
	}
	var out strings.Builder
	for _, line := range slices.Sorted(maps.Keys(places)) {
		fmt.Fprintln(&out, line)
		for _, place := range places[line] {
			if place != "" {
				fmt.Fprintf(&out, "    in %s.template\n", place)
			}
		}
	}
	return out.String()
}

func flatten(at string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if strings.ContainsAny(key, "./") {
				key = "[" + key + "]"
			}
			flatten(at+"."+key, item, into)
		}
	case []any:
		for i, item := range v {
			flatten(fmt.Sprintf("%s.%d", at, i), item, into)
		}
	default:
		into[at] = fmt.Sprint(v)
	}
}
