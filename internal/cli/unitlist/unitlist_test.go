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

package unitlist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

// The scheduler writes the queue in force some time after a unit has moved.
func TestTheQueueOfAUnit(t *testing.T) {
	for name, c := range map[string]struct {
		spec, effective string
		matches         bool
	}{
		"named":                  {"express", "", true},
		"named, and in force":    {"express", "express", true},
		"moved a moment ago":     {"express", "shared", true},
		"moved away":             {"shared", "express", false},
		"found by the quota":     {"", "express", true},
		"another, found by it":   {"", "shared", false},
		"not looked at, unnamed": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &v1alpha1.QueueUnit{Spec: v1alpha1.QueueUnitSpec{Queue: c.spec}}
			if c.effective != "" {
				u.Status.Effective = &v1alpha1.Effective{Queue: c.effective}
			}
			q := &Query{Queue: "express", States: unitstate.All()}
			require.Equal(t, c.matches, q.matches(u))
		})
	}
}
