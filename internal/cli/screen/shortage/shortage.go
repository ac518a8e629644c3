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

// Package shortage puts what a quota is short of into words.
package shortage

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Shortage is one in the words of a short answer.
type Shortage struct{ visibility.Shortage }

// Words are the numbers in one to four sentences.
func (x *Shortage) Words() string {
	bound, limit := Binding(&x.Shortage)
	switch {
	case x.NeverFits && x.Resource == resources.Jobs:
		return fmt.Sprintf("Quota %s never has more than %s admitted jobs (its max-jobs).", x.Level, limit.String())
	case x.NeverFits:
		return fmt.Sprintf("The job asks for %s. Quota %s never gives more than %s (%s).",
			x.Amount(x.Request), x.Level, limit.String(), boundWords(bound))
	case x.Rightful != nil:
		return fmt.Sprintf("The job asks for %s. Quota %s can get at most %s while others use what they are guaranteed. "+
			"It is admitted when they use less.", x.Amount(x.Request), x.Level, x.Rightful.String())
	case x.Request.IsZero():
		return fmt.Sprintf("Quota %s is %s over its limit of %s (%s). Nothing is admitted there until that is freed.",
			x.Level, x.Amount(x.Missing), limit.String(), boundWords(bound))
	case x.Resource == resources.Jobs:
		return fmt.Sprintf("Quota %s may have %s admitted jobs (its max-jobs), and has %s.%s",
			x.Level, limit.String(), ptr.To(x.inUse()).String(), x.claims())
	}
	return fmt.Sprintf("Needs %s: %s.%s%s", x.Amount(x.Request), x.room(bound, &limit), x.claims(), x.kept())
}

// room is the free part of the limit.
func (x *Shortage) room(bound string, limit *resource.Quantity) string {
	words := boundWords(bound)
	if used := x.inUse(); used.Cmp(*limit) > 0 {
		return fmt.Sprintf("quota %s uses %s, and its limit is %s (%s)", x.Level, used.String(), limit.String(), words)
	}
	return fmt.Sprintf("quota %s has %s of %s free (%s)", x.Level, atLeastZero(x.Free).String(), limit.String(), words)
}

func (x *Shortage) claims() string {
	if x.ClaimedAhead == nil {
		return ""
	}
	return fmt.Sprintf(" Jobs ahead claim %s.", x.ClaimedAhead.String())
}

// kept is the part that is free and not for the job.
func (x *Shortage) kept() (text string) {
	if x.Guaranteed != nil {
		text += fmt.Sprintf(" It keeps %s for quotas that use less than they are guaranteed.", x.Guaranteed.String())
	}
	if x.Unusable != nil && (x.Bound == "total" || x.IsShare()) {
		text += fmt.Sprintf(" %s of the cluster is free on nodes that take no pods.", x.Amount(*x.Unusable))
	}
	return text
}

// IsShare says that the limit follows what others ask for.
func (x *Shortage) IsShare() bool { return x.Bound == "runtime" || x.Bound == "rightful" }

// Claimed says that there is enough but for claims ahead.
func (x *Shortage) Claimed() bool { return x.Request.Cmp(x.Free) <= 0 && !x.Request.IsZero() }

func (x *Shortage) inUse() resource.Quantity {
	used := x.Used.DeepCopy()
	used.Add(x.Reserved)
	return used
}

// Amount of the resource in words.
func (x *Shortage) Amount(of resource.Quantity) string {
	if x.Resource == resources.Jobs {
		if of.Value() == 1 {
			return "1 job"
		}
		return of.String() + " jobs"
	}
	return of.String() + " " + x.Resource
}

// bounds are the limits of a level in words.
var bounds = map[string]string{
	"max": "its max", "min": "its min, which bounds jobs that are not preemptible", "runtime": "its share now",
	"total": "all that the cluster has", "rightful": "what it can get while others use what they are guaranteed",
}

func boundWords(bound string) string {
	if words, known := bounds[bound]; known {
		return words
	}
	return bound
}

// Others names what is missing in the shortages of a list other than one, claims aside.
func Others(list []visibility.Shortage, but *Shortage) (parts []string) {
	for i := range list {
		x := &Shortage{list[i]}
		other := x.Level != but.Level || x.Resource != but.Resource
		if other && x.NeverFits == but.NeverFits && !x.Claimed() && x.Missing.Sign() > 0 {
			parts = append(parts, fmt.Sprintf("%s at %s", x.Amount(x.Missing), x.Level))
		}
	}
	return parts
}

// Fits is the largest amount that a job of this resource can ask for now; empty if that is nothing, or not known.
func Fits(list []visibility.Shortage) string {
	var least *Shortage
	for i := range list {
		x := &Shortage{list[i]}
		switch {
		case x.NeverFits, x.ClaimedAhead != nil, x.Rightful != nil, x.Resource == resources.Jobs, x.Free.Sign() <= 0,
			least != nil && least.Resource != x.Resource:
			return ""
		case least == nil || x.Free.Cmp(least.Free) < 0:
			least = x
		}
	}
	if least == nil {
		return ""
	}
	return least.Amount(least.Free)
}

func atLeastZero(q resource.Quantity) *resource.Quantity {
	if q.Sign() < 0 {
		return &resource.Quantity{}
	}
	return &q
}

// Binding is the limit that a shortage is about. A unit that never fits asks for more than max, or min, and not for
// more than the share of a moment.
func Binding(x *visibility.Shortage) (bound string, limit resource.Quantity) {
	if x.NeverFits && x.Bound != "min" && x.Max != nil {
		return "max", *x.Max
	}
	return x.Bound, x.Limit
}

// Raises is the sentence about greater quotas. It is empty if these are not enough: if the cluster has too little, or a
// share at some level is too small. Of a job that never fits only what it never gets counts. The rest may come free.
func Raises(all []visibility.Shortage) string {
	never := slices.ContainsFunc(all, func(x visibility.Shortage) bool { return x.NeverFits })
	decides := never
	var parts []string
	for i := range all {
		x := &all[i]
		if never && !x.NeverFits {
			continue
		}
		bound, limit := Binding(x)
		if x.Bound == "total" || bound != "max" && bound != "min" {
			return ""
		}
		decides = decides || x.Binds
		enough := limit.DeepCopy()
		if enough.Add(x.Missing); bound != x.Bound {
			enough = x.Request
		}
		parts = append(parts, fmt.Sprintf("%s of %s of quota %s from %s to %s",
			bound, x.Resource, x.Level, limit.String(), enough.String()))
	}
	if !decides { // something else keeps the job from its turn
		return ""
	}
	return "An operator raises " + strings.Join(parts, ", and ") + "."
}
