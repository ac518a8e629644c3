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

package life

import (
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A unit holds the amount of its object, gives the rest back if it asks for less, and waits for growth.
func TestGrowth(t *testing.T) {
	asks := func(request, pods int64) func(*Facts) {
		return func(f *Facts) { f.Unit.Request, f.Unit.Pods = cpu(request), pods }
	}
	with := func(all ...func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			for _, but := range all {
				but(f)
			}
		}
	}
	pods := func(all, assigned int64) func(*Facts) { return func(f *Facts) { f.havePods(all, assigned) } }
	late := func(n int64) func(*Facts) { return func(f *Facts) { f.Pods.Charges.Late = cpu(n) } }
	// unrecorded: an object of a version that did not say what it held.
	unrecorded := func(f *Facts) { f.Unit.Held, f.Unit.Recorded, f.Unit.HeldPods = resources.List{}, false, 0 }
	const inLine = "holds 4, passed, asks since 0s, in line for 2 to hold 6 for 6 pods"
	answer := func(f *Facts) (string, string) { return placeOf(ClassifyAdmitted(f)), "" }
	check(t, admitted, answer, []row{
		{"asks for more", asks(6, 6), inLine, ""},
		{"its pods ask for more", pods(6, 4), inLine, ""},
		{"since it began to", with(asks(6, 6), func(f *Facts) { f.Now, f.Asking = at(time.Hour), momentOf(time.Minute) }),
			"holds 4, passed, asks since 1m0s, in line for 2 to hold 6 for 6 pods", ""},
		{"as its object says", with(asks(6, 6), func(f *Facts) { f.Unit.ResizePending = momentOf(time.Second) }),
			"holds 4, passed, asks since 1s, in line for 2 to hold 6 for 6 pods", ""},
		{"in whole seconds", with(asks(6, 6), func(f *Facts) { f.Now = at(1500 * time.Millisecond) }),
			"holds 4, passed, asks since 1s, in line for 2 to hold 6 for 6 pods", ""},
		{"no more", func(f *Facts) { f.Asking = momentOf(time.Minute) }, "holds 4, passed", ""},
		{"checks did not answer for that", with(asks(6, 6), func(f *Facts) {
			f.Queue.AdmissionChecks = []queue.AdmissionCheck{{Name: "a"}}
		}), inLine + ", unchecked", ""},
		{"nor for what its pods ask", with(pods(6, 4), func(f *Facts) {
			f.Queue.AdmissionChecks = []queue.AdmissionCheck{{Name: "a"}}
		}), inLine + ", unchecked", ""},
		{"refused before", with(asks(6, 6), func(f *Facts) { f.Refused.Until = at(time.Second) }),
			"holds 4, passed, asks since 0s, again 1s", ""},
		{"its pods use it already", with(asks(6, 6), pods(6, 6)), "holds 4, passed, writes 6 for 6 pods", ""},
		{"or a part", with(asks(6, 6), pods(6, 5)),
			"holds 4, passed, asks since 0s, in line for 1 to hold 6 for 6 pods", ""},
		{"pods that leave use it yet", with(asks(6, 6), pods(6, 6), late(2)), "holds 4, passed", ""},
		{"successors of those were asked about", with(pods(6, 4), late(2), func(f *Facts) {
			f.Queue.AdmissionChecks = []queue.AdmissionCheck{{Name: "a"}}
		}), inLine, ""},
		{"not before it is let go", with(asks(6, 6), func(f *Facts) {
			f.Unit.Phase, f.Unit.Checks = unit.PhaseReserved, nil
		}), "holds 4, passed, checked, writes its release, asks since 0s", ""},
		{"could not be admitted", with(asks(6, -1)), "holds 4, passed", ""},
		{"in a phase that is not known", with(asks(6, 6), func(f *Facts) { f.Unit.Phase = "Odd" }), "holds 4", ""},

		{"its job is smaller", with(asks(2, 2), pods(2, 2)), "holds 4, passed, writes 2 for 2 pods", ""},
		{"its job has no pods", with(asks(0, 0), pods(0, 0)),
			"holds 4, passed, writes 0 for 0 pods, again 5m0s", ""},
		{"no pods, as far as they are gone", with(asks(0, 0), pods(1, 1)), "holds 4, passed, writes 1 for 1 pods", ""},
		{"not before its pods are gone", asks(2, 2), "holds 4, passed", ""},
		{"as far as they are", with(asks(2, 2), pods(3, 3)), "holds 4, passed, writes 3 for 3 pods", ""},
		{"as many pods are there, and use less", with(asks(2, 2), pods(3, 3), func(f *Facts) { f.Pods.Charges.Pods = 4 }),
			"holds 4, passed, writes 3 for 4 pods", ""},
		{"refused before, it gives back later", with(asks(2, 2), pods(2, 2), func(f *Facts) {
			f.Refused.Until = at(time.Second)
		}), "holds 4, passed, again 1s", ""},
		{"its pods are away for a moment", pods(1, 1), "holds 4, passed", ""},
		{"as many pods ask for less", with(asks(2, 4), pods(2, 2)), "holds 4, passed", ""},
		{"fewer pods ask for as much", with(asks(4, 2), pods(2, 2)), "holds 4, passed, writes 4 for 2 pods", ""},
		{"fewer pods ask for more", with(asks(6, 2), pods(2, 2)),
			"holds 4, passed, asks since 0s, in line for 2 to hold 6 for 2 pods", ""},

		{"its object does not say what it holds", with(unrecorded, pods(2, 2)), "holds 4, passed, writes 4 for 4 pods", ""},
		{"adopted: what is bound", with(unrecorded, pods(4, 3), func(f *Facts) { f.Unit.Adopted = true }),
			"holds 0, passed, writes 3 for 4 pods", ""},
		{"adopted, and it is written", func(f *Facts) { f.havePods(3, 3); f.Unit.Adopted = true }, "holds 4, passed", ""},
		{"adopted, and nothing is bound", with(unrecorded, pods(4, 0), func(f *Facts) { f.Unit.Adopted = true }),
			"holds 0, passed, asks since 0s, in line for 4 to hold 4 for 4 pods", ""},

		{"with several sizes pods beyond its number wait", with(pods(6, 4), func(f *Facts) {
			f.Unit.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: 6, Least: 1, Request: cpu(6)}})
		}), "holds 4, passed", ""},
		{"no more than those may ask for more", with(pods(4, 4), func(f *Facts) {
			f.Unit.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: 6, Least: 1, Request: cpu(6)}})
			f.Pods.Charges.All = cpu(5)
		}), "holds 4, passed, asks since 0s, in line for 1 to hold 5 for 4 pods", ""},
	})
}
