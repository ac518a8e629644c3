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

// Package alias reads the labels of Kueue, YuniKorn and Volcano as if they were ours. It is pure: from labels and the
// configuration it computes the names of a quota and a queue.
package alias

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

// System is another queue system whose labels can be understood.
type System string

// Systems that are known.
const (
	Kueue    System = "Kueue"
	YuniKorn System = "YuniKorn"
	Volcano  System = "Volcano"
)

// keys of labels by which jobs of a system, or their pod templates, name a queue; the first that is there counts.
var keys = map[System][]string{
	Kueue:    {"kueue.x-k8s.io/queue-name"},
	YuniKorn: {"yunikorn.apache.org/queue", "queue"},
	Volcano:  {"volcano.sh/queue-name", volcanoAnnotation},
}

// objects of a system that only its own installation has, as group and resource. Kueue's AdmissionChecks are ours, too.
var objects = map[System][2]string{
	Kueue:   {"kueue.x-k8s.io", "localqueues"},
	Volcano: {"scheduling.volcano.sh", "queues"},
}

// Objects are a group and a resource that the API server serves where the system is installed. YuniKorn has none.
func (s System) Objects() (group, resource string) { return objects[s][0], objects[s][1] }

// volcanoAnnotation on a pod template names the queue of Volcano: it reads no label of a plain Job.
const volcanoAnnotation = "scheduling.volcano.sh/queue-name"

var (
	// ErrAmbiguous is of a job whose labels name more than one queue.
	ErrAmbiguous = errors.New("the job names more than one queue")
	// ErrUnmapped is of a job whose label names a queue that the aliases of its namespace do not list.
	ErrUnmapped = errors.New("no alias of this namespace lists the queue of the job")
)

// Names are what a job is queued by: a quota, a queue, or both.
type Names struct {
	// Quota is the name of an ElasticQuota.
	Quota string `json:"quota,omitempty"`
	// Queue is the name of a Queue; without it the default queue of the quota is used.
	Queue string `json:"queue,omitempty"`
	// Path of the quota in the tree, where a job names it so. The quota is not known before the path is resolved.
	Path string `json:"-"`
}

// Entry understands the labels of one system in some namespaces.
type Entry struct {
	// System is Kueue, YuniKorn or Volcano.
	System System `json:"system"`
	// NamespaceSelector selects the namespaces by their labels. It must select by something. If entries of one system
	// select the same namespace, the first of them counts.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// Queues has the quota and the queue here for each name of a queue there. Paths are subtrees of the tree of quotas: a
	// name that is a path in one of them names the quota of that path. Other names mean nothing.
	Queues map[string]Names `json:"queues,omitempty"`
	Paths  []string         `json:"paths,omitempty"`
	// Priorities has a number for each name of a WorkloadPriorityClass of Kueue. A job that names another one has the
	// priority of its pods.
	Priorities map[string]int32 `json:"priorities,omitempty"`
	// Force has the entry count although the API server serves queues of the system, which may hold the same jobs.
	Force bool `json:"force,omitempty"`
}

// Table is what a list of entries was compiled to. It is immutable; the zero value has no alias.
type Table []compiled

type compiled struct {
	system     System
	namespaces labels.Selector
	queues     map[string]Names
	paths      []string
	priorities map[string]int32
}

// to is what a name of the other system stands for; false if it means nothing.
func (c *compiled) to(name string) (Names, bool) {
	to, listed := c.queues[name]
	if !listed && slices.ContainsFunc(c.paths, func(subtree string) bool { return quotapath.Within(name, subtree) }) {
		return Names{Path: name}, true
	}
	return to, listed
}

// Compile checks the entries.
func Compile(entries []Entry) (Table, error) {
	var table Table
	for i, e := range entries {
		selector, err := e.check()
		if err != nil {
			return nil, fmt.Errorf("aliases[%d]%w", i, err)
		}
		table = append(table, compiled{e.System, selector, e.Queues, e.Paths, e.Priorities})
	}
	return table, nil
}

func (e *Entry) check() (labels.Selector, error) {
	if keys[e.System] == nil {
		return nil, fmt.Errorf(".system: %q is none of %s, %s and %s", e.System, Kueue, YuniKorn, Volcano)
	}
	selector, err := metav1.LabelSelectorAsSelector(e.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf(".namespaceSelector: %w", err)
	}
	if selector.Empty() || e.NamespaceSelector == nil {
		return nil, errors.New(".namespaceSelector: it must select namespaces by a label")
	}
	if len(e.Queues)+len(e.Paths) == 0 {
		return nil, errors.New(".queues: it lists no queue")
	}
	for i, subtree := range e.Paths {
		if _, err := quotapath.Elements(subtree); err != nil && subtree != quotapath.Root {
			return nil, fmt.Errorf(".paths[%d]: %w", i, err)
		}
	}
	if len(e.Priorities) > 0 && e.System != Kueue {
		return nil, fmt.Errorf(".priorities: %s has no WorkloadPriorityClasses", e.System)
	}
	for name, to := range e.Queues {
		if to == (Names{}) {
			return nil, fmt.Errorf(".queues[%s]: it names neither a quota nor a queue", name)
		}
		if to.Quota != "" && len(validation.IsValidLabelValue(to.Quota)) > 0 {
			return nil, fmt.Errorf(".queues[%s].quota: %q is not the value of a label", name, to.Quota)
		}
	}
	return selector, nil
}

// Keys of all labels that the table looks at.
func (t Table) Keys() []string {
	var all []string
	for i := range t {
		all = append(all, keys[t[i].system]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Annotations reduces annotations to those that are read as labels are.
func Annotations(annotations map[string]string) map[string]string {
	if name := annotations[volcanoAnnotation]; name != "" {
		return map[string]string{volcanoAnnotation: name}
	}
	return nil
}

// said is a queue that a job names in the words of one system.
type said struct {
	key, name string
	of        *compiled
}

// Selects says whether labels of another system are understood in a namespace.
func (t Table) Selects(namespaceLabels map[string]string) bool {
	return slices.ContainsFunc(t, func(c compiled) bool { return c.namespaces.Matches(labels.Set(namespaceLabels)) })
}

// Asks says whether one of the sets of labels names a queue that is listed for the namespace.
func (t Table) Asks(namespaceLabels map[string]string, sets ...map[string]string) bool {
	return slices.ContainsFunc(t.find(namespaceLabels, sets), func(s said) bool {
		_, listed := s.of.to(s.name)
		return listed
	})
}

// Read returns the quota and the queue that a job names by labels of another system. own is what the job names by our
// labels. The error is ErrAmbiguous or ErrUnmapped, with the labels in a sentence.
func (t Table) Read(own Names, namespaceLabels map[string]string, sets ...map[string]string) (Names, error) {
	found := t.find(namespaceLabels, sets)
	if len(found) == 0 {
		return Names{}, nil
	}
	first := found[0]
	if len(found) > 1 {
		other := found[1]
		return Names{}, fmt.Errorf("%w: %s is %q and %s is %q", ErrAmbiguous, first.key, first.name, other.key, other.name)
	}
	to, listed := first.of.to(first.name)
	switch {
	case !listed && own != Names{}:
		return Names{}, nil
	case !listed:
		return Names{}, fmt.Errorf("%w: %s is %q", ErrUnmapped, first.key, first.name)
	case differ(to.Path, own.Path):
		return Names{}, fmt.Errorf("%w: %s is %q, and the job names path %q", ErrAmbiguous, first.key, first.name, own.Path)
	case differ(quotaOf(to), quotaOf(own)):
		return Names{}, fmt.Errorf("%w: %s %q stands for quota %q, and the job names quota %q",
			ErrAmbiguous, first.key, first.name, quotaOf(to), quotaOf(own))
	case differ(to.Queue, own.Queue):
		return Names{}, fmt.Errorf("%w: %s %q stands for queue %q, and the job names queue %q",
			ErrAmbiguous, first.key, first.name, to.Queue, own.Queue)
	}
	return to, nil
}

// quotaOf names is their quota, or the one that the path would lead to.
func quotaOf(n Names) string {
	if n.Quota != "" {
		return n.Quota
	}
	return quotapath.Quota(n.Path)
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// find returns each queue that the sets name, once, in the order of the systems of the table. A set names one queue of
// each system at most.
func (t Table) find(namespaceLabels map[string]string, sets []map[string]string) (found []said) {
	if len(t) == 0 {
		return nil // the scheduler asks for every pod
	}
	seen := map[System]bool{}
	for i := range t {
		c := &t[i]
		if seen[c.system] || !c.namespaces.Matches(labels.Set(namespaceLabels)) {
			continue
		}
		seen[c.system] = true
		for _, set := range sets {
			key, name := named(set, keys[c.system])
			if name != "" && !slices.ContainsFunc(found, func(s said) bool { return s.of == c && s.name == name }) {
				found = append(found, said{key, name, c})
			}
		}
	}
	return found
}

func named(set map[string]string, keys []string) (key, name string) {
	for _, key := range keys {
		if name := set[key]; name != "" {
			return key, name
		}
	}
	return "", ""
}
