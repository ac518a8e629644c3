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

// Package holders says who holds what a waiting unit is short of, as far as its reader may know.
package holders

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// mostNamed is the number of units that an answer names.
const mostNamed = 100

// List names the holders in namespaces that a reader may read, and sums up the others. It is nil without a level.
func List(h *questions.Holders, may func(namespace string) bool) *v1alpha1.Holders {
	if h.Level == "" {
		return nil
	}
	out := &v1alpha1.Holders{Level: h.Level, Resource: h.Resource, Units: []v1alpha1.Holder{}}
	others := h.Total
	for i := range h.Rows {
		row := &h.Rows[i]
		namespace, name, _ := strings.Cut(row.Key, "/")
		if len(out.Units) == mostNamed {
			break
		}
		if !may(namespace) {
			continue
		}
		u := v1alpha1.Holder{
			Namespace: namespace, Name: name, Job: row.Job, Quota: row.Quota, Held: resources.Quantity(h.Resource, row.Amount),
		}
		if !row.Since.IsZero() {
			since := metav1.NewTime(row.Since)
			u.Since = &since
		}
		out.Units = append(out.Units, u)
		others = resources.SaturatingSub(others, row.Amount)
	}
	out.Others = resources.Quantity(h.Resource, max(0, others))
	return out
}
