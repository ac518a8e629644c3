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

package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// maxPodSetName is the bound of the API on the name of a pod set.
const maxPodSetName = 63

var (
	// ErrMalformed marks an object whose fields are not of the type that its kind gives them.
	ErrMalformed = errors.New("malformed job")
	// ErrQuotaMismatch marks a job that names more than one quota.
	ErrQuotaMismatch = errors.New("job names more than one quota")
)

// PodSet is one group of pods of a job.
type PodSet struct {
	Name string
	// Count of pods that the job still needs at once; may be zero.
	Count    int32
	Template *corev1.PodTemplateSpec
	// Raw is the template as the job has it, as JSON.
	Raw []byte
}

// Suspended says whether the job is suspended.
func (k *Kind) Suspended(job *unstructured.Unstructured) bool {
	value, _ := lookup(job.Object, k.Suspend).(bool)
	return value
}

// Started says whether the job has begun to run and has not been reset since. While it is, the API server
// refuses changes of pod templates.
func (k *Kind) Started(job *unstructured.Unstructured) bool {
	return lookup(job.Object, k.StartTime) != nil
}

// SuspensionSeen says whether the job's own controller has noted that the job is suspended.
func (k *Kind) SuspensionSeen(job *unstructured.Unstructured) bool {
	_, ok := k.condition(job, k.SuspendedCondition)
	return ok
}

// ManagedByOther says whether somebody else than the kind's own controller has the job.
func (k *Kind) ManagedByOther(job *unstructured.Unstructured) bool {
	if k.ManagedBy == nil {
		return false
	}
	manager, ok := lookup(job.Object, k.ManagedBy).(string)
	if !ok || manager == "" {
		return false
	}
	for _, own := range k.OwnControllers {
		if manager == own {
			return false
		}
	}
	return true
}

// Active is the number of pods that the job has and that have not ended.
func (k *Kind) Active(job *unstructured.Unstructured) int64 { return amountAt(job, k.ActivePods) }

// Running is the number of pods that are ready; above zero the job counts as running.
func (k *Kind) Running(job *unstructured.Unstructured) int64 { return amountAt(job, k.ReadyPods) }

// End is how a job ended.
type End struct {
	Succeeded bool
	// Message is what the job's controller says of it; may be empty.
	Message string
}

// Ended returns how the job ended, or false while it has not.
func (k *Kind) Ended(job *unstructured.Unstructured) (End, bool) {
	if message, ok := k.condition(job, k.Failed); ok {
		return End{Message: message}, true
	}
	if message, ok := k.condition(job, k.Succeeded); ok {
		return End{Succeeded: true, Message: message}, true
	}
	return End{}, false
}

// PodSets reads the pod sets. The error is ErrMalformed for a count or template that cannot be read; then the
// sets that could be read, up to it, are returned as well.
func (k *Kind) PodSets(job *unstructured.Unstructured) ([]PodSet, error) {
	sets := make([]PodSet, 0, len(k.Sets))
	for i := range k.Sets {
		set, err := k.podSet(job, &k.Sets[i])
		if err != nil {
			return sets, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

func (k *Kind) podSet(job *unstructured.Unstructured, fields *PodSetFields) (PodSet, error) {
	set := PodSet{Name: fields.podSetName(job.GetName())}
	var err error
	if set.Count, err = fields.count(job); err != nil {
		return set, err
	}
	value, ok := lookup(job.Object, fields.Template).(map[string]any)
	if !ok {
		return set, fmt.Errorf("%w: %s is not an object", ErrMalformed, fields.Template)
	}
	if set.Raw, err = json.Marshal(value); err != nil {
		return set, fmt.Errorf("%w: %s: %w", ErrMalformed, fields.Template, err)
	}
	if set.Template, err = DecodeTemplate(set.Raw); err != nil {
		return set, fmt.Errorf("%s: %w", fields.Template, err)
	}
	return set, nil
}

func (f *PodSetFields) podSetName(job string) string {
	switch {
	case f.Name != "":
		return f.Name
	case len(job) > maxPodSetName:
		return job[:maxPodSetName]
	default:
		return job
	}
}

// count is the least of the terms, at least zero.
func (f *PodSetFields) count(job *unstructured.Unstructured) (int32, error) {
	least := int64(math.MaxInt32)
	for _, term := range f.Count {
		n, ok, err := term.value(job)
		if err != nil {
			return 0, err
		}
		if ok {
			least = min(least, n)
		}
	}
	return int32(max(least, 0)), nil
}

// value is what the term allows; false when it bounds nothing.
func (t *CountTerm) value(job *unstructured.Unstructured) (int64, bool, error) {
	n, found, err := integer(job, t.Field)
	if err != nil {
		return 0, false, err
	}
	if !found {
		if t.Default == nil {
			return 0, false, nil
		}
		n = *t.Default
	}
	if n < 0 {
		return 0, false, fmt.Errorf("%w: %s is negative", ErrMalformed, t.Field)
	}
	if t.Less == nil {
		return n, true, nil
	}
	less, _, err := integer(job, t.Less)
	if err != nil {
		return 0, false, err
	}
	return n - max(less, 0), true, nil
}

// Quota returns the quota that the job names, and "" when it names none: then Koordinator decides by the
// namespace. Pod templates are read before the job; where two of them name different quotas the error is
// ErrQuotaMismatch.
func (k *Kind) Quota(job *unstructured.Unstructured) (string, error) {
	name, from := "", ""
	for i, set := range append(k.templateLabels(job), job.GetLabels()) {
		origin := "the job"
		if i < len(k.Sets) {
			origin = k.Sets[i].Template.String()
		}
		switch found := firstOf(set, v1alpha1.QuotaLabels[:]...); {
		case found == "" || found == name:
		case name == "":
			name, from = found, origin
		default:
			return name, fmt.Errorf("%w: %q on %s, %q on %s", ErrQuotaMismatch, name, from, found, origin)
		}
	}
	return name, nil
}

// Preemptible returns the value of the preemptible label: "false" if any pod template, or the job for a template
// without the label, says so, else the first value there is. Only "false" has a meaning: the job draws on min only.
// ElasticQuota reads the label of each pod; a job of both sorts counts as a whole, so that none of its pods is refused
// for min.
func (k *Kind) Preemptible(job *unstructured.Unstructured) string {
	first, own := "", job.GetLabels()[v1alpha1.LabelPreemptible]
	for _, set := range k.templateLabels(job) {
		value := set[v1alpha1.LabelPreemptible]
		if value == "" {
			value = own
		}
		if value == "false" {
			return value
		}
		if first == "" {
			first = value
		}
	}
	if first == "" {
		return own
	}
	return first
}

// Queue returns the queue that the job names by annotation or label, or "".
func (k *Kind) Queue(job *unstructured.Unstructured) string {
	if name := job.GetAnnotations()[v1alpha1.QueueNameKey]; name != "" {
		return name
	}
	for _, set := range append([]map[string]string{job.GetLabels()}, k.templateLabels(job)...) {
		if name := set[v1alpha1.QueueNameKey]; name != "" {
			return name
		}
	}
	return ""
}

// Priority of a job: the name of a class that has one, and a number in its place. Both may be absent: then the
// cluster's default holds.
type Priority struct {
	Value *int32
	Class string
}

// PriorityOf reads the job's own field, else the first pod template; an annotation puts its number in the place of
// theirs. The error is ErrMalformed for one that is no 32-bit integer; then what would hold without it is returned.
func (k *Kind) PriorityOf(job *unstructured.Unstructured) (Priority, error) {
	priority := k.plainPriority(job)
	text, annotated := job.GetAnnotations()[v1alpha1.AnnotationPriority]
	if !annotated {
		return priority, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return priority, fmt.Errorf("%w: annotation %s: %q is not a 32-bit integer", ErrMalformed,
			v1alpha1.AnnotationPriority, text)
	}
	value := int32(n)
	priority.Value = &value
	return priority, nil
}

// plainPriority is that without the annotation.
func (k *Kind) plainPriority(job *unstructured.Unstructured) Priority {
	for _, field := range k.PriorityClass {
		if class, ok := lookup(job.Object, field).(string); ok && class != "" {
			return Priority{Class: class}
		}
	}
	return k.templatePriority(job)
}

// PriorityOfPods says whether the priority of the job is that of its pods: neither an annotation nor a field of the job
// gives another.
func (k *Kind) PriorityOfPods(job *unstructured.Unstructured) bool {
	if _, annotated := job.GetAnnotations()[v1alpha1.AnnotationPriority]; annotated {
		return false
	}
	for _, field := range k.PriorityClass {
		if class, ok := lookup(job.Object, field).(string); ok && class != "" {
			return false
		}
	}
	return true
}

func (k *Kind) templatePriority(job *unstructured.Unstructured) Priority {
	for i := range k.Sets {
		spec := k.Sets[i].Template.child("spec")
		class, _ := lookup(job.Object, spec.child("priorityClassName")).(string)
		n, found, err := integer(job, spec.child("priority"))
		if err != nil || !found || n != int64(int32(n)) { //nolint:gosec // that is the question
			if class == "" {
				continue
			}
			return Priority{Class: class}
		}
		value := int32(n) //nolint:gosec // checked above
		return Priority{Value: &value, Class: class}
	}
	return Priority{}
}

// PodSelector selects the pods of the job.
func (k *Kind) PodSelector(job *unstructured.Unstructured) labels.Selector {
	return labels.SelectorFromSet(labels.Set{k.PodOwnerLabel: string(job.GetUID())})
}

// templateLabels are the labels of the pod templates, one set for each pod set, nil where there are none.
func (k *Kind) templateLabels(job *unstructured.Unstructured) []map[string]string {
	sets := make([]map[string]string, 0, len(k.Sets)+2)
	for i := range k.Sets {
		sets = append(sets, stringMap(lookup(job.Object, k.Sets[i].Template.child("metadata", "labels"))))
	}
	return sets
}

// condition returns the message of the condition of this type if its status is True.
func (k *Kind) condition(job *unstructured.Unstructured, conditionType string) (string, bool) {
	list, _ := lookup(job.Object, k.Conditions).([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["type"] == conditionType && c["status"] == "True" {
			message, _ := c["message"].(string)
			return message, true
		}
	}
	return "", false
}

// lookup returns the value at the path, or nil.
func lookup(object map[string]any, p Path) any {
	if len(p) == 0 {
		return nil
	}
	var value any = object
	for _, key := range p {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[key]
	}
	return value
}

// integer reads a whole number; an absent or null field is not found.
func integer(job *unstructured.Unstructured, p Path) (int64, bool, error) {
	switch n := lookup(job.Object, p).(type) {
	case nil:
		return 0, false, nil
	case int64:
		return n, true, nil
	case int32:
		return int64(n), true, nil
	case int:
		return int64(n), true, nil
	case float64:
		if n == math.Trunc(n) && math.Abs(n) <= math.MaxInt32 {
			return int64(n), true, nil
		}
	}
	return 0, false, fmt.Errorf("%w: %s is not a whole number", ErrMalformed, p)
}

func amountAt(job *unstructured.Unstructured, p Path) int64 {
	n, _, err := integer(job, p)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

func stringMap(value any) map[string]string {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]string, len(fields))
	for key, v := range fields {
		if s, ok := v.(string); ok {
			out[key] = s
		}
	}
	return out
}

func firstOf(set map[string]string, keys ...string) string {
	for _, key := range keys {
		if value := set[key]; value != "" {
			return value
		}
	}
	return ""
}
