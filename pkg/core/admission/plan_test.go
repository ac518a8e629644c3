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

package admission

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"

// sorted is a plan with its writes by kind.
type sorted struct {
	transition.Plan
	Admit   []*transition.Admit
	Dequeue []*transition.Dequeue
	Evict   []*transition.Evict
	Resize  []*transition.Resize
	Preempt []*transition.Preempt
}

// of are the writes of a plan that are of one kind, in their order.
func of[W transition.Write](p transition.Plan) (some []W) {
	for _, w := range p.Writes {
		if w, is := w.(W); is {
			some = append(some, w)
		}
	}
	return some
}

func byKind(p transition.Plan) sorted {
	return sorted{
		Plan: p, Admit: of[*transition.Admit](p), Dequeue: of[*transition.Dequeue](p),
		Evict: of[*transition.Evict](p), Resize: of[*transition.Resize](p),
		Preempt: of[*transition.Preempt](p),
	}
}
