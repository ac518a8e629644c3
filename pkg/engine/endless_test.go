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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// To read 1e-99999999 as a quantity takes minutes. Written into one unit, it must not cost the informer of all units
// that time (F14): the deadline only turns an endless test into a failing one.
func TestAnAmountThatTakesForEverToReadParksItsUnit(t *testing.T) {
	const endless = "1e-99999999"
	amounts := map[string]any{"cpu": endless}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": map[string]any{"requests": amounts}}}}}
	for name, content := range map[string]map[string]any{
		"in the request":      {"spec": map[string]any{"request": amounts}},
		"in the former field": {"spec": map[string]any{"resource": amounts}},
		"in a pod template":   {"spec": map[string]any{"podSet": []any{map[string]any{"name": "main", "template": template}}}},
		"in what it holds":    {"spec": map[string]any{"request": map[string]any{"cpu": "1"}}, "status": map[string]any{"admissions": []any{map[string]any{"name": "main", "resources": amounts}}}},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan *unitObject, 1)
			go func() { done <- decodeUnit(&unstructured.Unstructured{Object: content}) }()
			select {
			case u := <-done:
				require.Equal(t, admission.ReasonInvalidRequest, u.invalid)
			case <-time.After(20 * time.Second):
				t.Fatal("still reading")
			}
		})
	}
}
