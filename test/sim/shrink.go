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

package sim

// Shrink reduces a failing plan to steps that are all needed for the same invariant to fail, by delta debugging. The
// first steps, which make the cluster, stay.
func Shrink(p Plan, o Options) Plan {
	first := Run(p, o).Violations
	if len(first) == 0 {
		return p
	}
	fails := func(steps []Step) bool {
		q := p
		q.Steps = steps
		found := Run(q, o).Violations
		return len(found) > 0 && found[0].Invariant == first[0].Invariant
	}
	for size := (len(p.Steps) + 1) / 2; size >= 1; {
		cut := false
		for at := 0; at < len(p.Steps); {
			end := min(at+size, len(p.Steps))
			rest := append(append([]Step{}, p.Steps[:at]...), p.Steps[end:]...)
			if p.Steps[at].At > 0 && fails(rest) {
				p.Steps, cut = rest, true
			} else {
				at = end
			}
		}
		if size == 1 && !cut {
			break
		}
		if size > 1 || !cut {
			size /= 2
		}
	}
	return p
}
