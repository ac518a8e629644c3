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

// Package managedjobs decides which jobs the queue manages. Scheduler and controller both use its type Predicate, so
// they always agree.
package managedjobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobdefaults"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

const (
	// ConfigMap, in the namespace of the queues, holds the configuration under ManagedJobsKey.
	ConfigMap = "koord-jobqueue-managed-jobs"
	// Key is the key of the ConfigMap; its value is YAML of ManagedJobs.
	Key = "managedJobs"
	// AnnotationHash on the ConfigMap is the hash of what the controller works with.
	AnnotationHash = "koord-queue/managed-jobs-hash"
)

// Jobs says which jobs the queue manages. The scheduler and the controller read the same one.
type Jobs struct {
	// Mode is Manage or Observe, which only tells when jobs would be admitted. The label koord-queue/mode of a namespace
	// goes before it. Absent is Manage.
	Mode Mode `json:"mode,omitempty"`
	// Kinds of jobs; absent means Job.v1.batch alone.
	Kinds []KindEntry `json:"kinds,omitempty"`
	// NamespaceSelector selects namespaces by their labels; absent selects all. System namespaces never are.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// RequireQueueName: only jobs that name a queue are managed; without it a quota label is enough.
	RequireQueueName bool `json:"requireQueueName,omitempty"`
	// ManageMappedNamespaces says whether jobs that name neither quota nor queue are managed where a quota takes their
	// namespace. Absent is Labelled.
	ManageMappedNamespaces MappedNamespaces `json:"manageMappedNamespaces,omitempty"`
	// OtherQueueLabels are keys of labels by which a job says that another queue system has it, such as
	// "kueue.x-k8s.io/queue-name"; absent means none. Name those of systems that are there and hold the job: with any
	// other a tenant takes its jobs out of the queue.
	OtherQueueLabels []string `json:"otherQueueLabels,omitempty"`
	// SchedulerNames are the profiles of koord-scheduler. The queue cannot hold pods of another scheduler, so a job with
	// such pods is parked. Absent means koord-scheduler.
	SchedulerNames []string `json:"schedulerNames,omitempty"`
	// Aliases are labels of other queue systems that name a quota or queue here, in some namespaces. Absent means none.
	Aliases []alias.Entry `json:"aliases,omitempty"`
	// Placement gives jobs that name no quota the path of one, by their namespace. Absent means none.
	Placement []quotapath.Rule `json:"placement,omitempty"`
	// Gangs lists those of the kinds whose jobs are one gang each, whether they ask for it or not.
	Gangs []string `json:"gangs,omitempty"`
	// JobDefaults are settings of jobs by kind: gang, preemptible, priorityClassName, maxExecutionTime and grace. They
	// hold where the job says nothing.
	JobDefaults []jobdefaults.Entry `json:"jobDefaults,omitempty"`
	// UnmanagedJobs says what becomes of jobs of these kinds in the selected namespaces that ask for no queue. Absent is
	// Warn where NamespaceSelector names namespaces, and Pass where it selects all.
	UnmanagedJobs UnmanagedJobs `json:"unmanagedJobs,omitempty"`
	// LeftPods says what becomes of pods that an admitted job leaves behind when it is deleted without them. Absent is
	// Keep.
	LeftPods LeftPods `json:"leftPods,omitempty"`
}

// defaultKind is what is managed where no kinds are named.
const defaultKind = "Job.v1.batch"

// defaultScheduler is the profile that Koordinator installs.
const defaultScheduler = "koord-scheduler"

// MappedNamespaces are namespaces whose pods Koordinator charges to a quota without a label. Either a quota in the
// namespace has its name, or the annotation of a quota lists the namespace.
type MappedNamespaces string

const (
	// MappedNever: jobs there have to name a quota or a queue as anywhere.
	MappedNever MappedNamespaces = "Never"
	// MappedLabelled: they are managed if the namespace has the label LabelManaged, with the value "true".
	MappedLabelled MappedNamespaces = "Labelled"
	// MappedAlways: they are managed.
	MappedAlways MappedNamespaces = "Always"
)

// Mode is what the queue does about jobs.
type Mode string

const (
	// ModeManage: they run when they are admitted.
	ModeManage Mode = "Manage"
	// ModeObserve: they run when their owners say so, and are told when they would be admitted.
	ModeObserve Mode = "Observe"
)

// UnmanagedJobs is what becomes of jobs that could be managed and ask for no queue.
type UnmanagedJobs string

const (
	// UnmanagedPass: they run as if there was no queue.
	UnmanagedPass UnmanagedJobs = "Pass"
	// UnmanagedWarn: they run, and an event on the job says that no queue has it.
	UnmanagedWarn UnmanagedJobs = "Warn"
	// UnmanagedGate: they are told as well, and their pods are not scheduled.
	UnmanagedGate UnmanagedJobs = "Gate"
)

// LeftPods is what becomes of pods whose job is gone, or is being deleted and stays.
type LeftPods string

const (
	// LeftPodsKeep: they run to their end, and keep the quota of their unit as long.
	LeftPodsKeep LeftPods = "Keep"
	// LeftPodsEnd: they get an active deadline of a second.
	LeftPodsEnd LeftPods = "End"
)

// Default is what holds where nothing is configured.
func Default() Jobs {
	return Jobs{}.withDefaults()
}

// Parse reads YAML. An unknown field, an unknown kind or a malformed selector is an error that
// names it. Empty text gives the defaults.
func Parse(text string) (Jobs, error) {
	var m Jobs
	if err := yaml.UnmarshalStrict([]byte(text), &m); err != nil {
		return Jobs{}, fmt.Errorf("%s: %w", Key, err)
	}
	m = m.withDefaults()
	kinds, err := m.compiled()
	if err != nil {
		return Jobs{}, err
	}
	for i, name := range m.Gangs {
		if !suspendable(kinds, name) {
			return Jobs{}, fmt.Errorf("%s.gangs[%d]: %q is none of the kinds here that can be suspended",
				Key, i, name)
		}
	}
	for i, key := range m.OtherQueueLabels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return Jobs{}, fmt.Errorf("%s.otherQueueLabels[%d]: %q is not the key of a label: %s",
				Key, i, key, strings.Join(problems, "; "))
		}
	}
	if err := m.checkDefaults(kinds); err != nil {
		return Jobs{}, err
	}
	if err := m.checkAliases(); err != nil {
		return Jobs{}, err
	}
	if _, err := quotapath.Compile(m.Placement); err != nil {
		return Jobs{}, fmt.Errorf("%s.%w", Key, err)
	}
	if _, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector); err != nil {
		return Jobs{}, fmt.Errorf("%s.namespaceSelector: %w", Key, err)
	}
	if err := m.checkWords(); err != nil {
		return Jobs{}, err
	}
	return m, nil
}

// checkWords checks the fields that name one of a few words.
func (m *Jobs) checkWords() error {
	if m.Mode != "" && m.Mode != ModeObserve {
		return fmt.Errorf("%s.mode: %q is none of %s and %s", Key, m.Mode, ModeManage, ModeObserve)
	}
	switch m.ManageMappedNamespaces {
	case "", MappedNever, MappedAlways:
	default:
		return fmt.Errorf("%s.manageMappedNamespaces: %q is none of %s, %s and %s",
			Key, m.ManageMappedNamespaces, MappedNever, MappedLabelled, MappedAlways)
	}
	switch m.LeftPods {
	case "", LeftPodsKeep, LeftPodsEnd:
	default:
		return fmt.Errorf("%s.leftPods: %q is none of %s and %s", Key, m.LeftPods, LeftPodsKeep, LeftPodsEnd)
	}
	switch m.UnmanagedJobs {
	case UnmanagedPass, UnmanagedWarn, UnmanagedGate:
		return nil
	default:
		return fmt.Errorf("%s.unmanagedJobs: %q is none of %s, %s and %s",
			Key, m.UnmanagedJobs, UnmanagedPass, UnmanagedWarn, UnmanagedGate)
	}
}

// From reads the data of the ConfigMap; nil data and an absent key give the defaults.
func From(data map[string]string) (Jobs, error) {
	return Parse(data[Key])
}

// Hash identifies the meaning of the configuration: equal for two that manage the same jobs, whatever order
// or defaults they are written with.
func (m Jobs) Hash() string {
	canonical, err := json.Marshal(m.withDefaults())
	if err != nil { // strings, booleans and a selector always encode
		return ""
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// withDefaults returns the canonical form: defaults filled in, lists sorted, nothing shared with the receiver.
func (m Jobs) withDefaults() Jobs {
	kinds := slices.Clone(m.Kinds)
	if len(kinds) == 0 {
		kinds = []KindEntry{{Name: defaultKind}}
	}
	slices.SortStableFunc(kinds, func(a, b KindEntry) int { return strings.Compare(a.String(), b.String()) })
	m.Kinds = slices.CompactFunc(kinds, func(a, b KindEntry) bool { return a.Name != "" && a.Name == b.Name })
	m.OtherQueueLabels, m.SchedulerNames, m.Gangs = sorted(m.OtherQueueLabels), sorted(m.SchedulerNames), sorted(m.Gangs)
	if len(m.SchedulerNames) == 0 {
		m.SchedulerNames = []string{defaultScheduler}
	}
	m.JobDefaults = slices.Clone(m.JobDefaults)
	slices.SortStableFunc(m.JobDefaults, func(a, b jobdefaults.Entry) int { return strings.Compare(a.Kind, b.Kind) })
	if m.Mode == ModeManage {
		m.Mode = ""
	}
	if m.ManageMappedNamespaces == MappedLabelled {
		m.ManageMappedNamespaces = "" // so that the hash is that of configurations from before there was a choice
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	selector := m.NamespaceSelector.DeepCopy()
	for i := range selector.MatchExpressions {
		slices.Sort(selector.MatchExpressions[i].Values)
	}
	slices.SortFunc(selector.MatchExpressions, func(a, b metav1.LabelSelectorRequirement) int {
		return strings.Compare(a.String(), b.String())
	})
	if len(selector.MatchLabels) == 0 {
		selector.MatchLabels = nil
	}
	if len(selector.MatchExpressions) == 0 {
		selector.MatchExpressions = nil
	}
	m.NamespaceSelector = selector
	if m.UnmanagedJobs == "" {
		m.UnmanagedJobs = UnmanagedPass
		if len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			m.UnmanagedJobs = UnmanagedWarn
		}
	}
	return m
}

// sorted is a list of its own without what is there twice; nil if it is empty.
func sorted(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
