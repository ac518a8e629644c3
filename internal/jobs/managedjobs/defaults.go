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

package managedjobs

import (
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobdefaults"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// checkDefaults of kinds that are managed. Into pods of others nothing can be written.
func (m Jobs) checkDefaults(kinds []jobkind.Kind) error {
	seen := map[string]bool{}
	for i := range m.JobDefaults {
		e := &m.JobDefaults[i]
		at := fmt.Sprintf("%s.jobDefaults[kind=%.128s]", Key, e.Kind)
		if !suspendable(kinds, e.Kind) {
			return fmt.Errorf("%s: it is none of the kinds here that can be suspended", at)
		}
		if seen[e.Kind] {
			return fmt.Errorf("%s is there twice", at)
		}
		seen[e.Kind] = true
		if err := e.Check(); err != nil {
			return fmt.Errorf("%s.%w", at, err)
		}
	}
	return nil
}

// suspendable says whether the name is that of one of the kinds, and jobs of it can be suspended.
func suspendable(kinds []jobkind.Kind, name string) bool {
	for i := range kinds {
		if kinds[i].String() == name {
			return kinds[i].CanBeSuspended()
		}
	}
	return false
}

// DefaultClasses are the priority classes that defaults name, sorted. Whether they are there is not checked.
func (m Jobs) DefaultClasses() []string {
	names := make([]string, 0, len(m.JobDefaults))
	for i := range m.JobDefaults {
		if name := m.JobDefaults[i].PriorityClassName; name != "" {
			names = append(names, name)
		}
	}
	return sorted(names)
}

// Defaults of jobs of the kind; nil if there are none.
func Defaults(p *Predicate, kind *jobkind.Kind) *jobdefaults.Settings {
	for i := range p.defaults {
		if e := &p.defaults[i]; e.Kind == kind.String() {
			return &e.Settings
		}
	}
	return nil
}
