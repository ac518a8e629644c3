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
	"testing"
)

func containerOf(cpu, policy string) Object {
	c := Object{"name": "c", "resources": Object{"requests": Object{"cpu": cpu}}}
	if policy != "" {
		c["restartPolicy"] = policy
	}
	return c
}

// TestRequest is that of the scheduler: init containers run one after the other, and those that stay run with the rest.
func TestRequest(t *testing.T) {
	for name, c := range map[string]struct {
		spec Object
		want Object
	}{
		"containers together": {Object{"containers": []any{containerOf("1", ""), containerOf("2", "")}}, Object{"cpu": "3"}},
		"large init container": {Object{
			"initContainers": []any{containerOf("5", ""), containerOf("4", "")}, "containers": []any{containerOf("1", "")},
		}, Object{"cpu": "5"}},
		"one that stays": {Object{
			"initContainers": []any{containerOf("2", "Always"), containerOf("4", "")}, "containers": []any{containerOf("1", "")},
		}, Object{"cpu": "6"}},
		"one that stays, later": {Object{
			"initContainers": []any{containerOf("4", ""), containerOf("2", "Always")}, "containers": []any{containerOf("1", "")},
		}, Object{"cpu": "4"}},
		"limits and overhead": {Object{
			"containers": []any{Object{"resources": Object{"limits": Object{"cpu": "1", "x/gpu": "0"}}}},
			"overhead":   Object{"cpu": "250m"},
		}, Object{"cpu": "1250m"}},
	} {
		s := PodSet{Template: Object{"spec": c.spec}}
		have, err := s.request()
		if err != nil || !reflect.DeepEqual(have.object(), c.want) {
			t.Errorf("%s: have %v %v, want %v", name, have.object(), err, c.want)
		}
	}
}
