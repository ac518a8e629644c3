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

package quotapath

import (
	"errors"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Rule gives jobs of some namespaces a path.
type Rule struct {
	// NamespaceSelector selects the namespaces by their labels. It must select by something. If several rules select a
	// namespace, the first of them counts.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// Path of the quota. "{namespace}" in it stands for the name of the namespace, and "{label:KEY}" for the value of a
	// label of the namespace.
	Path string `json:"path"`
}

// Rules is what a list of rules was compiled to. It is immutable; the zero value places no job.
type Rules []placement

type placement struct {
	namespaces labels.Selector
	path       string
}

// placeholder of a name or of a label.
var placeholder = regexp.MustCompile(`\{(namespace|label:([^{}]*))\}`)

// Compile checks the rules.
func Compile(rules []Rule) (Rules, error) {
	var compiled Rules
	for i, r := range rules {
		selector, err := r.check()
		if err != nil {
			return nil, fmt.Errorf("placement[%d]%w", i, err)
		}
		compiled = append(compiled, placement{namespaces: selector, path: r.Path})
	}
	return compiled, nil
}

func (r *Rule) check() (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(r.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf(".namespaceSelector: %w", err)
	}
	if selector.Empty() || r.NamespaceSelector == nil {
		return nil, errors.New(".namespaceSelector: it must select namespaces by a label")
	}
	for _, found := range placeholder.FindAllStringSubmatch(r.Path, -1) {
		if found[1] != "namespace" && len(validation.IsQualifiedName(found[2])) > 0 {
			return nil, fmt.Errorf(".path: %q is not the key of a label", found[2])
		}
	}
	if _, err := Elements(placeholder.ReplaceAllString(r.Path, "x")); err != nil {
		return nil, fmt.Errorf(".path: %w", err)
	}
	return selector, nil
}

// Select says whether a rule places jobs of a namespace.
func (r Rules) Select(namespaceLabels map[string]string) bool { return r.of(namespaceLabels) != nil }

func (r Rules) of(namespaceLabels map[string]string) *placement {
	for i := range r {
		if r[i].namespaces.Matches(labels.Set(namespaceLabels)) {
			return &r[i]
		}
	}
	return nil
}

// Path is the path that a namespace gives its jobs; "" if no rule selects the namespace. The error is ErrMalformed for
// a name or label that is no element of a path. A dot in it would lead elsewhere in the tree.
func (r Rules) Path(namespace string, namespaceLabels map[string]string) (string, error) {
	rule := r.of(namespaceLabels)
	if rule == nil {
		return "", nil
	}
	var wrong error
	path := placeholder.ReplaceAllStringFunc(rule.path, func(text string) string {
		value := namespace
		if key := placeholder.FindStringSubmatch(text)[2]; key != "" {
			value = namespaceLabels[key]
		}
		if wrong == nil && len(validation.IsDNS1123Label(value)) > 0 {
			wrong = fmt.Errorf("%w: %s of namespace %q is %q", ErrMalformed, text, namespace, value)
		}
		return value
	})
	return path, wrong
}
