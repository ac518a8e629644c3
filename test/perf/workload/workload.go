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

// Package workload reads the description of a performance run and computes when each unit is created. It also computes
// how long the run would take if admission cost nothing.
package workload

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Workload is the content of a file. Times are in milliseconds, amounts in cores.
type Workload struct {
	Name string `json:"name"`
	// Groups are parent quotas, each with QueuesPerGroup leaf quotas, each with its default queue.
	Groups         int   `json:"groups"`
	QueuesPerGroup int   `json:"queuesPerGroup"`
	Quota          Quota `json:"quota"`
	// QueuePolicy of all queues; absent means Block. The systems in the comparison serve high priorities first. If smaller
	// units may pass, a unit that needs a whole quota waits until they run out.
	QueuePolicy v1alpha1.QueuePolicy `json:"queuePolicy,omitempty"`
	// Classes of units; every queue gets every class.
	Classes []Class `json:"classes"`
}

// Quota is cpu of each leaf (min, max) and of each group, whose min is that of its leaves together.
type Quota struct {
	Min      resource.Quantity `json:"min"`
	Max      resource.Quantity `json:"max"`
	GroupMax resource.Quantity `json:"groupMax"`
}

// Class is a kind of units.
type Class struct {
	Name string `json:"name"`
	// Count of units in each queue, one every IntervalMs from the start on. Without an interval all come at once.
	Count      int   `json:"count"`
	IntervalMs int64 `json:"intervalMs"`
	// RuntimeMs is how long a unit runs once it is admitted.
	RuntimeMs int64             `json:"runtimeMs"`
	Priority  int32             `json:"priority"`
	CPU       resource.Quantity `json:"cpu"`
}

// Unit is one unit to create.
type Unit struct {
	// Class and Queue are indices; the queues of group g are those from g*QueuesPerGroup on.
	Class, Queue int
	// Index is the number of the unit among those of its class and queue.
	Index int
	// At is the time of its creation, from the start of the clock.
	At time.Duration
}

const (
	maxQueues = 100_000
	maxUnits  = 5_000_000
	maxMillis = int64(24 * time.Hour / time.Millisecond)
)

// Load reads a file.
func Load(path string) (*Workload, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// Parse reads the content of a file. Fields that are not known are refused, and what can never be run.
func Parse(content []byte) (*Workload, error) {
	w := &Workload{}
	if err := yaml.UnmarshalStrict(content, w); err != nil {
		return nil, err
	}
	if w.QueuePolicy == "" {
		w.QueuePolicy = v1alpha1.PolicyBlock
	}
	return w, w.Validate()
}

// Validate refuses what can never be run, and names the fields.
func (w *Workload) Validate() error { return w.validate().ToAggregate() }

var policies = []v1alpha1.QueuePolicy{v1alpha1.PolicyPriority, v1alpha1.PolicyFIFO, v1alpha1.PolicyBlock,
	v1alpha1.PolicyIntelligent}

func (w *Workload) validate() field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(w.Name) {
		errs = append(errs, field.Invalid(field.NewPath("name"), w.Name, message))
	}
	errs = append(errs, between(field.NewPath("groups"), int64(w.Groups), 1, maxQueues)...)
	errs = append(errs, between(field.NewPath("queuesPerGroup"), int64(w.QueuesPerGroup), 1, maxQueues)...)
	if len(errs) == 0 {
		errs = append(errs, between(field.NewPath("groups"), int64(w.Groups)*int64(w.QueuesPerGroup), 1, maxQueues)...)
	}
	if !slices.Contains(policies, w.QueuePolicy) {
		errs = append(errs, field.NotSupported(field.NewPath("queuePolicy"), w.QueuePolicy, policies))
	}
	errs = append(errs, w.validateQuota(field.NewPath("quota"))...)
	if len(w.Classes) == 0 {
		errs = append(errs, field.Required(field.NewPath("classes"), "a run needs units"))
	}
	names := map[string]bool{}
	for i := range w.Classes {
		path := field.NewPath("classes").Index(i)
		errs = append(errs, w.validateClass(path, &w.Classes[i])...)
		if names[w.Classes[i].Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), w.Classes[i].Name))
		}
		names[w.Classes[i].Name] = true
	}
	if len(errs) > 0 {
		return errs
	}
	if count := w.count(); count > maxUnits {
		errs = append(errs, field.Invalid(field.NewPath("classes"), count, fmt.Sprintf("more than %d units", maxUnits)))
	}
	return errs
}

func between(path *field.Path, value, low, high int64) field.ErrorList {
	if value >= low && value <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", low, high))}
}

func (w *Workload) validateQuota(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	q := &w.Quota
	for _, amount := range []struct {
		name  string
		value resource.Quantity
	}{{"max", q.Max}, {"groupMax", q.GroupMax}} {
		if amount.value.Sign() <= 0 {
			errs = append(errs, field.Invalid(path.Child(amount.name), amount.value.String(), "must be positive"))
		}
	}
	if q.Min.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("min"), q.Min.String(), "must not be negative"))
	}
	if q.Min.Cmp(q.Max) > 0 {
		errs = append(errs, field.Invalid(path.Child("min"), q.Min.String(), "must not be above max "+q.Max.String()))
	}
	if sum := q.Min.MilliValue() * int64(w.QueuesPerGroup); sum > q.GroupMax.MilliValue() {
		errs = append(errs, field.Invalid(path.Child("min"), q.Min.String(),
			fmt.Sprintf("%d of it are more than groupMax %s", w.QueuesPerGroup, q.GroupMax.String())))
	}
	return errs
}

func (w *Workload) validateClass(path *field.Path, c *Class) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(c.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), c.Name, message))
	}
	errs = append(errs, between(path.Child("count"), int64(c.Count), 1, maxUnits)...)
	errs = append(errs, between(path.Child("intervalMs"), c.IntervalMs, 0, maxMillis)...)
	errs = append(errs, between(path.Child("runtimeMs"), c.RuntimeMs, 0, maxMillis)...)
	if c.CPU.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("cpu"), c.CPU.String(), "must be positive"))
	}
	for _, limit := range []struct {
		name  string
		value resource.Quantity
	}{{"max", w.Quota.Max}, {"groupMax", w.Quota.GroupMax}} {
		if c.CPU.Cmp(limit.value) > 0 {
			errs = append(errs, field.Invalid(path.Child("cpu"), c.CPU.String(),
				fmt.Sprintf("can never be admitted: quota.%s is %s", limit.name, limit.value.String())))
		}
	}
	return errs
}

// Queues is the number of leaf quotas.
func (w *Workload) Queues() int { return w.Groups * w.QueuesPerGroup }

// Capacity is what all groups together may use, in thousandths of a core.
func (w *Workload) Capacity() int64 { return int64(w.Groups) * w.Quota.GroupMax.MilliValue() }

func (w *Workload) count() int64 {
	total := int64(0)
	for i := range w.Classes {
		total += int64(w.Classes[i].Count) * int64(w.Queues())
	}
	return total
}

// Units lists the units in the order of their creation. Units of the same time go round the queues.
func (w *Workload) Units() []Unit {
	var units []Unit
	for class := range w.Classes {
		c := &w.Classes[class]
		for index := range c.Count {
			at := time.Duration(c.IntervalMs*int64(index)) * time.Millisecond
			for queue := range w.Queues() {
				units = append(units, Unit{Class: class, Queue: queue, Index: index, At: at})
			}
		}
	}
	slices.SortStableFunc(units, func(a, b Unit) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Index, b.Index))
	})
	return units
}

// Work is what all units together use, in thousandths of a core times seconds.
func (w *Workload) Work(units []Unit) float64 {
	total := 0.0
	for _, u := range units {
		c := &w.Classes[u.Class]
		total += float64(c.CPU.MilliValue()) * float64(c.RuntimeMs) / 1000
	}
	return total
}
