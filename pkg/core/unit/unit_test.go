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

package unit

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Two units are the same as long as no field of them differs, by its value and not by its address.
func TestSame(t *testing.T) {
	list := func() resources.List { return resources.FromMap(map[string]int64{"cpu": 1}) }
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Unit]()) {
		if field.Anonymous {
			continue // its fields come by themselves
		}
		var a, b Unit
		for _, u := range []*Unit{&a, &b} {
			switch f := reflect.ValueOf(u).Elem().FieldByIndex(field.Index).Addr().Interface().(type) {
			case *string:
				*f = "a"
			case *int32:
				*f = 1
			case *int64:
				*f = 1
			case *bool:
				*f = true
			case *time.Time:
				*f = time.Unix(1, 0)
				if u == &b {
					*f = f.In(time.FixedZone("there", 3600))
				}
			case *time.Duration:
				*f = 1
			case *ordered.Moment:
				*f = 1
			case *Phase:
				*f = PhaseEnqueued
			case *Reason:
				*f = ReasonPending
			case *Consumer:
				f.UID = "a"
			case *resources.List:
				*f = list()
			case *Expected:
				f.Each = list()
			case **Sizes:
				*f = NewSizes([]PodSetSize{{Count: 2, Least: 1, Request: list()}})
			case **CheckAnswers:
				*f = Asked([]string{"a"})
			case **Deactivation:
				*f = &Deactivation{Reason: "Gossip"}
			case **Saying:
				*f = &Saying{Reason: "Gossip"}
			default:
				require.Fail(t, "add a value of its type", field.Name)
			}
		}
		require.True(t, a.Same(&b), field.Name)
		require.False(t, a.Same(&Unit{}), field.Name)
	}
}
