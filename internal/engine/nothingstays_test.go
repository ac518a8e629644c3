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

package engine

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of what tenants make up nothing stays when it is gone, neither on a leader nor on a standby, which writes nothing.
// Names of queues that nobody made are not kept even while units name them.
func TestNothingStays(t *testing.T) {
	for _, leads := range []bool{true, false} {
		t.Run(fmt.Sprint("leads=", leads), func(t *testing.T) {
			r := newRig(t, quotasOf(10, testQuota))
			if leads {
				r.lead()
			}
			r.step()
			var units []string
			for i := range 20 {
				name := fmt.Sprint("u", i)
				r.job(name, "job-"+name)
				units = append(units, r.unit(name, 1, withConsumer("job-"+name), func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, "made-up-"+name, "spec", "queue")
				}))
				r.drive.FeedPod(podFor(name, "job-"+name, "1"), false, false)
			}
			r.step()
			require.True(t, r.engine.facts.statuses.Next().IsZero(), "nobody made these queues")
			for range 3 {
				r.advance(20 * time.Second)
			}
			for i, key := range units {
				name := fmt.Sprint("u", i)
				r.drive.FeedUnit(r.api.get(key), true)
				r.drive.FeedPod(podFor(name, "job-"+name, "1"), true, false)
				r.drive.FeedJob("Job.v1.batch", testNamespace, name, "", nil, false)
			}
			for range 3 {
				r.advance(20 * time.Second)
			}
			e := r.engine
			for of, part := range map[string]any{
				"engine": e, "facts": e.facts, "decisions": e.decisions, "units": e.units, "pods": e.pods, "publisher": e.publisher,
				"statuses": e.facts.statuses, "gauges": e.gauges, "core": e.core, "kinship": e.facts.kinship,
				"checks": e.facts.checks,
			} {
				nothingIn(t, of, reflect.ValueOf(part).Elem())
			}
			require.True(t, e.facts.statuses.Next().IsZero())
		})
	}
}

// nothingIn looks at every map of a struct, and of the structs of the engine in it.
func nothingIn(t *testing.T, of string, in reflect.Value) {
	for i := range in.NumField() {
		field, name := in.Field(i), of+"."+in.Type().Field(i).Name
		switch {
		case field.Kind() == reflect.Map:
			require.Zero(t, field.Len(), "%s: %v", name, field)
		case field.Kind() == reflect.Struct && strings.Contains(field.Type().PkgPath(), "/internal/engine"):
			nothingIn(t, name, field)
		}
	}
}
