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

// Package unitselector reads the selectors of a list of units.
package unitselector

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
)

// mostRequirements of a label selector. Each is compared with all labels of a unit.
const mostRequirements = 8

// fieldsOf a search are the fields that a field selector may name. The state is another one.
var fieldsOf = map[string]func(*unitbook.Search) *string{
	"job":   func(s *unitbook.Search) *string { return &s.Job },
	"queue": func(s *unitbook.Search) *string { return &s.Queue },
	"quota": func(s *unitbook.Search) *string { return &s.Quota },
}

// fieldState may also be unequal to a state, and be named several times.
const fieldState = "state"

// Field says whether a field selector may name a field.
func Field(label, value string) (string, string, error) {
	if fieldsOf[label] == nil && label != fieldState {
		return "", "", fmt.Errorf("units cannot be selected by %q", label)
	}
	return label, value, nil
}

// Read returns a search without bounds. An error says which part of a selector is not possible.
func Read(byLabel labels.Selector, byField fields.Selector) (*unitbook.Search, error) {
	s := &unitbook.Search{}
	if byLabel != nil && !byLabel.Empty() {
		if requirements, _ := byLabel.Requirements(); len(requirements) > mostRequirements {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %d requirements, at most %d are possible",
				len(requirements), mostRequirements))
		}
		s.Labels = byLabel
	}
	if byField == nil {
		return s, nil
	}
	for _, r := range byField.Requirements() {
		equal := r.Operator == selection.Equals || r.Operator == selection.DoubleEquals
		if r.Field == fieldState {
			if err := restrict(s, unitstate.State(r.Value), equal); err != nil {
				return nil, err
			}
			continue
		}
		of := fieldsOf[r.Field]
		if of == nil || !equal || r.Value == "" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: units cannot be selected by %s%s%s", r.Field,
				r.Operator, r.Value))
		}
		*of(s) = r.Value
	}
	return s, nil
}

// restrict a search to units that are in a state, or that are not.
func restrict(s *unitbook.Search, state unitstate.State, in bool) error {
	if !slices.Contains(unitstate.All(), state) {
		return apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: state %q is none of %v", state, unitstate.All()))
	}
	if s.States == nil {
		s.States = unitstate.All()
	}
	s.States = slices.DeleteFunc(s.States, func(one unitstate.State) bool { return (one == state) != in })
	return nil
}
