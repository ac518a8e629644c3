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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Parsing 1e-99999999 as a quantity takes minutes. Such an amount in one unit must not cost the informer of all units
// that time (F14). The deadline only turns an endless test into a failure.
func TestAnAmountThatTakesForEverToReadParksItsUnit(t *testing.T) {
	const endless = "1e-99999999"
	amounts := map[string]any{"cpu": endless}
	template, capitals := templateOf("requests", amounts), templateOf("Requests", amounts)
	for name, content := range map[string]map[string]any{
		"in the request":      {"spec": map[string]any{"request": amounts}},
		"in the former field": {"spec": map[string]any{"resource": amounts}},
		"in a field of a pod template that is none": {
			"spec": map[string]any{"podSet": []any{map[string]any{"name": "main", "template": capitals}}},
		},
		"in a pod template": {"spec": map[string]any{"podSet": []any{map[string]any{"name": "main", "template": template}}}},
		"in what it holds": {"spec": map[string]any{"request": map[string]any{"cpu": "1"}},
			"status": map[string]any{"admissions": []any{map[string]any{"name": "main", "resources": amounts}}}},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan *objects.Unit, 1)
			go func() { done <- unitFrom(&unstructured.Unstructured{Object: content}) }()
			select {
			case u := <-done:
				if name != "in a field of a pod template that is none" {
					require.Equal(t, unit.ReasonInvalidRequest, u.Invalid)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("still reading")
			}
		})
	}
}

func templateOf(field string, amounts map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "main", "resources": map[string]any{field: amounts}},
	}}}
}

// sidecars is a pod template with containers that ask for one resource each. To add them up takes time that grows with
// the square of their number.
func sidecars(containers, names int) map[string]any {
	list := make([]any, containers)
	for i := range list {
		list[i] = map[string]any{
			"name": "s", "restartPolicy": "Always",
			"resources": map[string]any{"requests": amountsOf(i%names, i%names+1)},
		}
	}
	return map[string]any{"spec": map[string]any{"initContainers": list}}
}

func amountsOf(from, to int) map[string]any {
	amounts := map[string]any{}
	for i := from; i < to; i++ {
		amounts[fmt.Sprintf("example.com/r%d", i)] = "1"
	}
	return amounts
}

func podSets(templates ...map[string]any) map[string]any {
	sets := make([]any, len(templates))
	for i, template := range templates {
		sets[i] = map[string]any{"name": fmt.Sprint("s", i), "template": template}
	}
	return map[string]any{"spec": map[string]any{"podSet": sets}}
}

func request(amounts map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"request": amounts}}
}

func holding(admissions, names int) map[string]any {
	list := make([]any, admissions)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprint("s", i), "resources": amountsOf(i, i+names)}
	}
	u := request(map[string]any{"cpu": "1"})
	u["status"] = map[string]any{"phase": "Dequeued", "admissions": list}
	return u
}

// Lists are bounded before their amounts are added up: the largest list is cheap, and a larger one parks its unit.
func TestWhatIsBeyondAllBoundsParksItsUnit(t *testing.T) {
	for name, c := range map[string]struct{ most, beyond map[string]any }{
		"resources of a request": {request(amountsOf(0, 64)), request(amountsOf(0, 65))},
		"resources of a container": {podSets(templateOf("requests", amountsOf(0, 64))),
			podSets(templateOf("requests", amountsOf(0, 65)))},
		"limits of a container": {podSets(templateOf("limits", amountsOf(0, 64))),
			podSets(templateOf("limits", amountsOf(0, 65)))},
		"resources of a pod":  {podSets(sidecars(64, 64)), podSets(sidecars(65, 65))},
		"containers of a pod": {podSets(sidecars(512, 8)), podSets(sidecars(513, 8))},
		"resources of all pod sets": {podSets(sidecars(60, 60), sidecars(64, 64)),
			podSets(sidecars(60, 60), templateOf("requests", amountsOf(60, 65)))},
		"pod sets": {podSets(slices.Repeat([]map[string]any{sidecars(1, 1)}, 64)...),
			podSets(slices.Repeat([]map[string]any{sidecars(1, 1)}, 65)...)},
		"admissions":                {holding(64, 1), holding(65, 1)},
		"resources of an admission": {holding(1, 64), holding(1, 65)},
	} {
		t.Run(name, func(t *testing.T) {
			most := unitFrom(&unstructured.Unstructured{Object: c.most})
			require.Empty(t, most.Invalid, most.InvalidMessage)
			beyond := unitFrom(&unstructured.Unstructured{Object: c.beyond})
			require.Equal(t, unit.ReasonInvalidRequest, beyond.Invalid)
			require.Contains(t, beyond.InvalidMessage, "at most")
			if beyond.Phase.Holds() {
				require.Equal(t, "cpu: 1", beyond.Holds().String(),
					"what it asks for counts where what it holds cannot be read (I1)")
			}
		})
	}
}

// BenchmarkDecodeUnit reads the largest unit that is added up, and one as large as an API server takes, which is not.
func BenchmarkDecodeUnit(b *testing.B) {
	for name, template := range map[string]map[string]any{"most": sidecars(512, 64), "beyond": sidecars(15000, 15000)} {
		b.Run(name, func(b *testing.B) {
			obj := &unstructured.Unstructured{Object: podSets(template)}
			for b.Loop() {
				unitFrom(obj)
			}
		})
	}
}
