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

package submit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// maxQuantityText bounds the text of an amount. longExponent finds exponents that no amount needs: to add up 1e99999999
// takes minutes.
const maxQuantityText = 64

var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}$`)

type amounts map[string]resource.Quantity

// request of one pod, as the scheduler computes it: the containers together, or one of the init containers if that
// needs more, and the overhead.
func (s *PodSet) request() (amounts, error) {
	spec, _ := s.Template["spec"].(Object)
	total, running := amounts{}, amounts{}
	containers, err := requests(spec["containers"])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.found.TemplatePath(), err)
	}
	for _, c := range containers {
		total.add(c.amounts)
	}
	inits, err := requests(spec["initContainers"])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.found.TemplatePath(), err)
	}
	most := amounts{}
	for _, c := range inits {
		if c.stays {
			total.add(c.amounts)
			running.add(c.amounts)
			most.raise(running)
			continue
		}
		one := maps.Clone(running)
		one.add(c.amounts)
		most.raise(one)
	}
	total.raise(most)
	overhead, err := amountsOf(spec["overhead"])
	if err != nil {
		return nil, fmt.Errorf("%s: overhead: %w", s.found.TemplatePath(), err)
	}
	total.add(overhead)
	return total, nil
}

// container has the request of one container. If stays is set, it is an init container that runs on with the others.
type container struct {
	amounts
	stays bool
}

func requests(list any) ([]container, error) {
	items, isList := list.([]any)
	if !isList && list != nil {
		return nil, fmt.Errorf("%w: containers are not a list", podset.ErrMalformed)
	}
	all := make([]container, 0, len(items))
	for _, item := range items {
		fields, _ := item.(Object)
		policy, _ := fields["restartPolicy"].(string)
		resources, _ := fields["resources"].(Object)
		asked, err := amountsOf(resources["requests"])
		if err != nil {
			return nil, err
		}
		limits, err := amountsOf(resources["limits"])
		if err != nil {
			return nil, err
		}
		for name, limit := range limits { // as the API server does
			if _, said := asked[name]; !said {
				asked[name] = limit
			}
		}
		all = append(all, container{asked, policy == "Always"})
	}
	return all, nil
}

func amountsOf(list any) (amounts, error) {
	fields, isObject := list.(Object)
	if !isObject && list != nil {
		return nil, fmt.Errorf("%w: resources are not an object", podset.ErrMalformed)
	}
	out := amounts{}
	for name, value := range fields {
		text := fmt.Sprint(value)
		if len(text) > maxQuantityText || longExponent.MatchString(text) {
			return nil, fmt.Errorf("%w: %.40q is no reasonable amount of %.40s", podset.ErrMalformed, text, name)
		}
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%w: %q is no amount of %.40s", podset.ErrMalformed, text, name)
		}
		out[name] = q
	}
	return out, nil
}

func (a amounts) add(b amounts) {
	for name, q := range b {
		have := a[name].DeepCopy()
		have.Add(q)
		a[name] = have
	}
}

// raise each amount to that of b.
func (a amounts) raise(b amounts) {
	for name, q := range b {
		if have, ok := a[name]; !ok || have.Cmp(q) < 0 {
			a[name] = q
		}
	}
}

func (a amounts) times(n int32) amounts {
	out := amounts{}
	for name, q := range a {
		one := q.DeepCopy()
		one.Mul(int64(n))
		out[name] = one
	}
	return out
}

// object has the amounts that are not zero, as JSON.
func (a amounts) object() Object {
	out := Object{}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if q := a[name]; !q.IsZero() {
			out[name] = q.String()
		}
	}
	return out
}
