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

// Package whatif compares the fates of jobs before and after changes of quotas, queues, capacity and jobs.
package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Changes in words, as the flags of the command have them.
type Changes struct {
	// Max and Min are QUOTA=RESOURCE=AMOUNT,..., and Capacity is [QUOTA=]RESOURCE=DIFFERENCE,... of a root.
	Max, Min, Capacity []string
	// Policy and Priority are QUEUE=VALUE, Hold and Drain are QUEUE.
	Policy, Priority, Hold, Drain []string
	// Jobs are NAME,KEY=VALUE,...
	Jobs []string
}

// None says that nothing is changed.
func (c *Changes) None() bool {
	return len(c.Max)+len(c.Min)+len(c.Capacity)+len(c.Policy)+len(c.Priority)+len(c.Hold)+len(c.Drain)+len(c.Jobs) == 0
}

// Apply returns changed facts; those that are given stay. now is the time of the facts.
func (c *Changes) Apply(f *virtual.Facts, now time.Time) (*virtual.Facts, error) {
	e := &edit{now: now, facts: &virtual.Facts{
		Config: f.Config, Quotas: slices.Clone(f.Quotas), Queues: slices.Clone(f.Queues), Units: slices.Clone(f.Units),
	}}
	e.known = known(f)
	for _, change := range []struct {
		flag  string
		words []string
		apply func(string) error
	}{
		{"max", c.Max, e.max}, {"min", c.Min, e.min}, {"capacity", c.Capacity, e.capacity}, {"policy", c.Policy, e.policy},
		{"priority", c.Priority, e.priority}, {"hold", c.Hold, e.hold}, {"drain", c.Drain, e.drain}, {"job", c.Jobs, e.job},
	} {
		for _, words := range change.words {
			if err := change.apply(words); err != nil {
				return nil, fmt.Errorf("--%s %s: %w", change.flag, words, err)
			}
		}
	}
	return e.facts, nil
}

// edit changes facts of its own.
type edit struct {
	now   time.Time
	facts *virtual.Facts
	known []string
}

func (e *edit) quota(name string) (*admission.Quota, error) {
	for i := range e.facts.Quotas {
		if q := &e.facts.Quotas[i]; q.Name == name {
			return q, nil
		}
	}
	return nil, fmt.Errorf("there is no quota %q", name)
}

func (e *edit) queue(name string) (*queue.Spec, error) {
	for i := range e.facts.Queues {
		if q := &e.facts.Queues[i]; q.Name == name {
			return q, nil
		}
	}
	return nil, fmt.Errorf("there is no queue %q", name)
}

// quotaAndAmounts of QUOTA=RESOURCE=AMOUNT,...
func (e *edit) quotaAndAmounts(words string) (*admission.Quota, resources.List, error) {
	name, list, _ := strings.Cut(words, "=")
	q, err := e.quota(name)
	if err != nil {
		return nil, resources.List{}, err
	}
	amounts, err := e.amounts(strings.Split(list, ","))
	return q, amounts, err
}

func (e *edit) max(words string) error {
	q, amounts, err := e.quotaAndAmounts(words)
	if err != nil {
		return err
	}
	if q.Parent == "" {
		return errors.New("the max of a root is what nodes have: use --capacity")
	}
	if q.Max = set(q.Max, amounts); !q.Shared {
		q.Limit = set(q.Limit, amounts)
	}
	return minWithinMax(q)
}

func (e *edit) min(words string) error {
	q, amounts, err := e.quotaAndAmounts(words)
	if err != nil {
		return err
	}
	q.Min = set(q.Min, amounts)
	return minWithinMax(q)
}

func minWithinMax(q *admission.Quota) error {
	for _, it := range q.Min.Items() {
		if most, bounded := q.Max.Get(it.Name); bounded && it.Amount > most {
			return fmt.Errorf("min of %s would be %s, and max %s", it.Name, resources.Format(it.Name, it.Amount),
				resources.Format(it.Name, most))
		}
	}
	return nil
}

func (e *edit) capacity(words string) error {
	var roots []string
	for i := range e.facts.Quotas {
		if q := &e.facts.Quotas[i]; q.Parent == "" {
			roots = append(roots, q.Name)
		}
	}
	if strings.Count(words, "=") == strings.Count(words, ",")+1 {
		if len(roots) != 1 {
			return fmt.Errorf("choose a root with QUOTA=: %s", strings.Join(roots, ", "))
		}
		words = roots[0] + "=" + words
	}
	name, list, _ := strings.Cut(words, "=")
	if !slices.Contains(roots, name) {
		return fmt.Errorf("%q is no root; choose from %s", name, strings.Join(roots, ", "))
	}
	q, err := e.quota(name)
	if err != nil {
		return err
	}
	for _, word := range strings.Split(list, ",") {
		less := strings.Contains(word, "=-")
		difference, err := e.amounts([]string{strings.NewReplacer("=-", "=", "=+", "=").Replace(word)})
		if err != nil {
			return err
		}
		change := resources.List.Add
		if less {
			change = resources.List.Sub
		}
		for _, list := range []*resources.List{&q.Max, &q.Limit} {
			*list = change(*list, difference).Floor0()
		}
	}
	return nil
}

func (e *edit) policy(words string) error {
	name, policy, _ := strings.Cut(words, "=")
	q, err := e.queue(name)
	if err != nil {
		return err
	}
	if policies := queue.Builtin(); policies[policy] == nil && e.facts.Config.Policies[policy] == nil {
		names := slices.Sorted(maps.Keys(policies))
		return fmt.Errorf("%q is no policy; choose from %s", policy, strings.Join(names, ", "))
	}
	q.Policy = policy
	return nil
}

func (e *edit) priority(words string) error {
	name, number, _ := strings.Cut(words, "=")
	q, err := e.queue(name)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is no priority", number)
	}
	q.Priority = int32(n)
	return nil
}

func (e *edit) hold(name string) error {
	q, err := e.queue(name)
	if err == nil {
		q.Held = true
	}
	return err
}

func (e *edit) drain(name string) error {
	q, err := e.queue(name)
	if err == nil {
		q.Held, q.Drains = true, true
	}
	return err
}

// namespace of jobs that name none.
const namespace = "what-if"

func (e *edit) job(words string) error {
	parts := strings.Split(words, ",")
	key := parts[0]
	if !strings.Contains(key, "/") {
		key = namespace + "/" + key
	}
	if of, name, _ := strings.Cut(key, "/"); of == "" || name == "" || strings.ContainsAny(key, "= ") {
		return errors.New("begin with the NAME or NAMESPACE/NAME of the job")
	}
	if slices.ContainsFunc(e.facts.Units, func(u *unit.Unit) bool { return u.Key == key }) {
		return fmt.Errorf("%q exists", key)
	}
	u := &unit.Unit{
		Key: key, UID: strings.ReplaceAll(key, "/", "_"), Created: e.now, Active: true, Phase: unit.PhaseEnqueued, Pods: 1,
	}
	var amounts []string
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		switch known, err := say(u, name, value); {
		case err != nil:
			return err
		case !known:
			amounts = append(amounts, part)
		}
	}
	if u.Pods < 1 || u.MaximumExecution < 0 || u.MaximumExecution > longest {
		return fmt.Errorf("pods have to be one or more, and the limit up to %s", longest)
	}
	return e.add(u, amounts)
}

// say a fact of a unit, unless the name is that of a resource.
func say(u *unit.Unit, name, value string) (known bool, err error) {
	var n int64
	switch name {
	case "queue":
		u.Queue = value
	case "quota":
		u.Quota = value
	case "pods":
		u.Pods, err = strconv.ParseInt(value, 10, 32)
	case "priority":
		n, err = strconv.ParseInt(value, 10, 32)
		u.Priority, u.MaxPriority = int32(n), int32(n)
	case "limit":
		u.MaximumExecution, err = time.ParseDuration(value)
	default:
		return false, nil
	}
	return true, err
}

// longest limit of a job.
const longest = 50 * 365 * 24 * time.Hour

func (e *edit) add(u *unit.Unit, amounts []string) (err error) {
	q, err := e.queue(u.Queue)
	if err != nil {
		return err
	}
	if u.Quota == "" {
		u.Quota = u.Queue
		if len(q.Quotas) == 1 {
			u.Quota = q.Quotas[0]
		}
	}
	if _, err := e.quota(u.Quota); err != nil {
		return err
	}
	if u.Request, err = e.amounts(amounts); err != nil {
		return err
	}
	// As of a job, others can preempt it, and the lists of its queue hold.
	_, name, _ := strings.Cut(u.Key, "/")
	u.Consumer = unit.Consumer{Kind: "Job.v1.batch", Namespace: u.Namespace(), Name: name, UID: u.UID}
	u.ConsumerManaged, u.OwnedByConsumer = true, true
	e.facts.Units = append(e.facts.Units, u)
	return nil
}
