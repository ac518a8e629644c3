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

package snapshot

import (
	"fmt"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

type document struct {
	Version  int         `json:"version"`
	At       time.Time   `json:"at"`
	Extended bool        `json:"extended,omitempty"`
	Config   config      `json:"config,omitzero"`
	Quotas   []quota     `json:"quotas"`
	Queues   []queueSpec `json:"queues"`
	Units    []unitSpec  `json:"units"`
	Runs     []run       `json:"runs,omitempty"`
}

type config struct {
	ClaimTimeout     span `json:"claimTimeout,omitempty"`
	ClaimAfter       span `json:"claimAfter,omitempty"`
	PartialAdmission bool `json:"partialAdmission,omitempty"`
}

type run struct {
	User  string `json:"user"`
	Queue string `json:"queue"`
	Size  string `json:"size"`
	Limit span   `json:"limit,omitempty"`
	Ran   span   `json:"ran"`
}

type quota struct {
	Name               string  `json:"name"`
	Parent             string  `json:"parent,omitempty"`
	Limit              amounts `json:"limit,omitempty"`
	Max                amounts `json:"max,omitempty"`
	Min                amounts `json:"min,omitempty"`
	Used               amounts `json:"used,omitempty"`
	NonPreemptibleUsed amounts `json:"nonPreemptibleUsed,omitempty"`
	Requested          amounts `json:"requested,omitempty"`
	Shared             bool    `json:"shared,omitempty"`
	KeepsMin           bool    `json:"keepsMin,omitempty"`
	Closed             bool    `json:"closed,omitempty"`
	Part               part    `json:"part,omitempty"`
	Weight             amounts `json:"weight,omitempty"`
	OwnUsed            amounts `json:"ownUsed,omitempty"`
	ScalesMin          bool    `json:"scalesMin,omitempty"`
	GuaranteesUsed     bool    `json:"guaranteesUsed,omitempty"`
}

func quotaOf(q *admission.Quota) quota {
	return quota{
		Name: q.Name, Parent: q.Parent, Limit: amountsOf(q.Limit), Max: amountsOf(q.Max), Min: amountsOf(q.Min),
		Used: amountsOf(q.Used), NonPreemptibleUsed: amountsOf(q.NonPreemptibleUsed), Requested: amountsOf(q.Requested),
		Shared: q.Shared, KeepsMin: q.KeepsMin, Closed: q.Closed, Part: part(q.Terms.Part),
		Weight: amountsOf(q.Terms.Weight), OwnUsed: amountsOf(q.Terms.OwnUsed), ScalesMin: q.Terms.ScalesMin,
		GuaranteesUsed: q.Terms.GuaranteesUsed,
	}
}

func (q *quota) read() admission.Quota {
	return admission.Quota{
		Name: q.Name, Parent: q.Parent, Limit: q.Limit.list(), Max: q.Max.list(), Min: q.Min.list(), Used: q.Used.list(),
		NonPreemptibleUsed: q.NonPreemptibleUsed.list(), Requested: q.Requested.list(), Shared: q.Shared,
		KeepsMin: q.KeepsMin, Closed: q.Closed,
		Terms: capacity.Terms{
			Part: shares.Part(q.Part), Weight: q.Weight.list(), OwnUsed: q.OwnUsed.list(), ScalesMin: q.ScalesMin,
			GuaranteesUsed: q.GuaranteesUsed,
		},
	}
}

type queueSpec struct {
	Name             string           `json:"name"`
	Policy           string           `json:"policy"`
	Priority         int32            `json:"priority,omitempty"`
	Threshold        int32            `json:"threshold,omitempty"`
	Quotas           []string         `json:"quotas,omitempty"`
	Lists            []string         `json:"lists,omitempty"`
	Fault            unit.Reason      `json:"fault,omitempty"`
	Held             bool             `json:"held,omitempty"`
	Drains           bool             `json:"drains,omitempty"`
	MaxPending       int32            `json:"maxPending"`
	MaxAdmitted      int32            `json:"maxAdmitted"`
	DefaultExecution span             `json:"defaultExecution,omitempty"`
	MostExecution    span             `json:"mostExecution,omitempty"`
	Preemption       preemption       `json:"preemption,omitzero"`
	PerNamespace     *namespaceBounds `json:"perNamespace,omitempty"`
}

type preemption struct {
	Reclaim     victims `json:"reclaim,omitempty"`
	WithinQueue victims `json:"withinQueue,omitempty"`
	MinRunTime  span    `json:"minRunTime,omitempty"`
	Protected   bool    `json:"protected,omitempty"`
	Adopted     bool    `json:"adopted,omitempty"`
	Keeps       bool    `json:"keeps,omitempty"`
	DryRun      bool    `json:"dryRun,omitempty"`
}

type namespaceBounds struct {
	MaxPending  int32 `json:"maxPending"`
	MaxAdmitted int32 `json:"maxAdmitted"`
}

func queueOf(q *queue.Spec) queueSpec {
	p := &q.Preemption
	out := queueSpec{
		Name: q.Name, Policy: q.Policy, Priority: q.Priority, Threshold: q.Threshold, Quotas: q.Quotas, Lists: q.Lists,
		Held: q.Held, Drains: q.Drains, MaxPending: q.MaxPending, MaxAdmitted: q.MaxAdmitted,
		DefaultExecution: span(q.Execution.Default), MostExecution: span(q.Execution.Most),
		Preemption: preemption{
			victims(p.Reclaim), victims(p.WithinQueue), span(p.MinRunTime), p.Protected, p.Adopted, p.Keeps, p.DryRun,
		},
	}
	if q.Fault != nil {
		out.Fault = q.Fault.Reason
	}
	if b := q.PerNamespace; b != nil {
		out.PerNamespace = &namespaceBounds{b.MaxPending, b.MaxAdmitted}
	}
	return out
}

func (q *queueSpec) read() queue.Spec {
	p := &q.Preemption
	out := queue.Spec{
		Name: q.Name, Policy: q.Policy, Priority: q.Priority, Threshold: q.Threshold, Quotas: q.Quotas, Lists: q.Lists,
		Held: q.Held, Drains: q.Drains, MaxPending: q.MaxPending, MaxAdmitted: q.MaxAdmitted,
		Execution: queue.ExecutionTimes{Default: time.Duration(q.DefaultExecution), Most: time.Duration(q.MostExecution)},
		Preemption: queue.Preemption{
			Reclaim: queue.Victims(p.Reclaim), WithinQueue: queue.Victims(p.WithinQueue),
			MinRunTime: time.Duration(p.MinRunTime), Protected: p.Protected, Adopted: p.Adopted, Keeps: p.Keeps,
			DryRun: p.DryRun,
		},
	}
	if q.Fault != "" {
		out.Fault = &queue.Fault{Reason: q.Fault}
	}
	if b := q.PerNamespace; b != nil {
		out.PerNamespace = &queue.NamespaceBounds{MaxPending: b.MaxPending, MaxAdmitted: b.MaxAdmitted}
	}
	return out
}

// amounts of resources, in the units of the core.
type amounts map[string]int64

func amountsOf(l resources.List) amounts {
	if l.Len() == 0 {
		return nil
	}
	out := make(amounts, l.Len())
	for _, it := range l.Items() {
		out[it.Name] = it.Amount
	}
	return out
}

func (a amounts) list() resources.List { return resources.FromMap(a) }

// span is a duration as Go writes it.
type span time.Duration

// longest a span can be. All that takes longer never ends in a world, and sums with times stay within bounds.
const longest = 50 * 365 * 24 * time.Hour

// MarshalText implements encoding.TextMarshaler.
func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is below zero", text)
	}
	*s = span(min(d, longest))
	return err
}

// part is shares.Part in a word.
type part shares.Part

var parts = []string{shares.None: "none", shares.Top: "top", shares.Sharing: "sharing", shares.Apart: "apart"}

// MarshalText implements encoding.TextMarshaler.
func (p part) MarshalText() ([]byte, error) { return []byte(parts[p]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *part) UnmarshalText(text []byte) error {
	i, err := wordOf(parts, text)
	*p = part(i)
	return err
}

// victims is queue.Victims in a word.
type victims queue.Victims

var victimWords = []string{
	queue.VictimsNone: "none", queue.VictimsOfLowerPriority: "lowerPriority", queue.VictimsAny: "any",
}

// MarshalText implements encoding.TextMarshaler.
func (v victims) MarshalText() ([]byte, error) { return []byte(victimWords[v]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *victims) UnmarshalText(text []byte) error {
	i, err := wordOf(victimWords, text)
	*v = victims(i)
	return err
}

func wordOf(words []string, text []byte) (uint8, error) {
	i := slices.Index(words, string(text))
	if i < 0 {
		return 0, fmt.Errorf("%q is none of %q", text, words)
	}
	return uint8(i), nil //nolint:gosec // there are few words
}
