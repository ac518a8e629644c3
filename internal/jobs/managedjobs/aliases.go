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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
)

// checkAliases: a label cannot both be understood and say that another system has the job.
func (m Jobs) checkAliases() error {
	table, err := alias.Compile(m.Aliases)
	if err != nil {
		return fmt.Errorf("%s.%w", Key, err)
	}
	for _, key := range table.Keys() {
		if slices.Contains(m.OtherQueueLabels, key) {
			return fmt.Errorf("%s.otherQueueLabels: an alias understands %q", Key, key)
		}
	}
	return nil
}

// WithoutRefused leaves out aliases of systems that are installed and would hold the same jobs, unless they are forced.
// It names these systems. The error is that of installed.
func (m Jobs) WithoutRefused(installed func(alias.System) (bool, error)) (_ Jobs, refused []alias.System, err error) {
	var kept []alias.Entry
	for _, e := range m.Aliases {
		there := false
		if !e.Force {
			if there, err = installed(e.System); err != nil {
				return m, nil, err
			}
		}
		if there {
			refused = append(refused, e.System)
		} else {
			kept = append(kept, e)
		}
	}
	m.Aliases = kept
	return m, refused, nil
}

// Aliased is a set for ManagesLabels: that of a job whose labels name a queue that an alias of its namespace lists.
func Aliased(p *Predicate, namespaceLabels map[string]string, labelSets ...map[string]string) map[string]string {
	if !p.aliases.Asks(namespaceLabels, labelSets...) {
		return nil
	}
	return map[string]string{v1alpha1.QueueNameKey: "of an alias"}
}

// Alias is the quota and queue that a job names by labels of another system, with its further requests. The errors are
// those of alias.Table. plain is the job in the form that its owner wrote.
func Alias(
	p *Predicate, plain *jobs.Job, namespaceLabels map[string]string,
) (names alias.Names, more alias.Further, err error) {
	if len(p.aliases) == 0 {
		return names, more, nil
	}
	quota, _ := plain.Quota() // if it names several, that is told, and the first of them counts here
	path, _ := jobs.QueuePath(plain)
	own := alias.Names{Quota: quota, Queue: plain.Queue(), Path: path}
	queues := setsOf(plain)
	names, err = p.aliases.Read(own, namespaceLabels, queues...)
	if names != (alias.Names{}) {
		labels := plain.Object.GetLabels()
		all := append(plain.TemplateAnnotations(), labels, plain.Object.GetAnnotations())
		more = p.aliases.Further(namespaceLabels, labels, queues, append(all, plain.TemplateLabels()...))
	}
	return names, more, err
}

// setsOf a job are the labels of it and of its pod templates, and the annotations of both that name a queue.
func setsOf(job *jobs.Job) []map[string]string {
	sets := append(job.TemplateLabels(), job.Object.GetLabels(), QueueAnnotation(job.Object.GetAnnotations()))
	for _, annotations := range job.TemplateAnnotations() {
		sets = append(sets, alias.Annotations(annotations))
	}
	return sets
}
