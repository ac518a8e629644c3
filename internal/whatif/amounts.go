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

package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// known are the resources that quotas and units name, sorted.
func known(f *virtual.Facts) []string {
	names := map[string]bool{}
	add := func(l resources.List) {
		for _, it := range l.Items() {
			names[it.Name] = true
		}
	}
	for i := range f.Quotas {
		add(f.Quotas[i].Max)
		add(f.Quotas[i].Min)
	}
	for _, u := range f.Units {
		add(u.Request)
	}
	return slices.Sorted(maps.Keys(names))
}

// resource of a name, or the only one whose name ends with it: gpu can be nvidia.com/gpu. A name that nothing has would
// change nothing.
func (e *edit) resource(name string) (string, error) {
	if slices.Contains(e.known, name) {
		return name, nil
	}
	var like []string
	for _, full := range e.known {
		if strings.HasSuffix(full, "/"+name) {
			like = append(like, full)
		}
	}
	if len(like) != 1 {
		return "", fmt.Errorf("no quota or job names the resource %q; choose from %s", name, strings.Join(e.known, ", "))
	}
	return like[0], nil
}

// amounts of RESOURCE=AMOUNT words.
func (e *edit) amounts(words []string) (resources.List, error) {
	quantities := map[string]resource.Quantity{}
	for _, word := range words {
		name, amount, found := strings.Cut(word, "=")
		if !found {
			return resources.List{}, errors.New("write amounts as RESOURCE=AMOUNT, with commas between them")
		}
		name, err := e.resource(name)
		if err != nil {
			return resources.List{}, err
		}
		if quantities[name], err = resource.ParseQuantity(amount); err != nil {
			return resources.List{}, fmt.Errorf("%q is no amount", amount)
		}
	}
	return resources.FromQuantities(quantities)
}

// set returns a list with these amounts in place of those that it has.
func set(l, amounts resources.List) resources.List {
	out := map[string]int64{}
	for _, list := range []resources.List{l, amounts} {
		for _, it := range list.Items() {
			out[it.Name] = it.Amount
		}
	}
	return resources.FromMap(out)
}
