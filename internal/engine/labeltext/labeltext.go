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

// Package labeltext encodes the labels of a unit as one string, because the core does not know labels.
package labeltext

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Max bounds the text of the labels that selectors look at, in bytes.
const Max = 16 << 10

// Of labels is equal for equal labels. No key or value has what stands between them.
func Of(set map[string]string) string { return labels.Set(set).String() }

// Selects says whether a selector selects the labels of a text of Of. An unreadable selector selects all: a surplus
// check asks somebody, and a missing one nobody.
func Selects(selector, text string) bool {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return true
	}
	return parsed.Matches(Text(text))
}

// Text is the labels of a text of Of.
type Text string

var _ labels.Labels = Text("")

// Has implements labels.Labels.
func (t Text) Has(label string) bool {
	_, exists := t.Lookup(label)
	return exists
}

// Get implements labels.Labels.
func (t Text) Get(label string) string {
	value, _ := t.Lookup(label)
	return value
}

// Lookup implements labels.Labels.
func (t Text) Lookup(label string) (value string, exists bool) {
	for pair := range strings.SplitSeq(string(t), ",") {
		if key, value, ok := strings.Cut(pair, "="); ok && key == label {
			return value, true
		}
	}
	return "", false
}
