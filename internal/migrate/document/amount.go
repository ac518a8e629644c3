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

package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// Amounts are resources as they are written; Parse reads them.
type Amounts map[string]any

// wellFormed bounds what is given to the parser of quantities, whose cost grows with the exponent.
var wellFormed = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,9})?([numkMGTPE]|[KMGTPE]i)?$`)

// Amount reads one quantity that is not negative.
func Amount(value any) (resource.Quantity, error) {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case json.Number:
		text = v.String()
	default:
		return resource.Quantity{}, fmt.Errorf("%T is no amount", value)
	}
	if len(text) == 0 || len(text) > 32 || !wellFormed.MatchString(text) {
		return resource.Quantity{}, fmt.Errorf("%.40q is no amount, or negative, or too long", text)
	}
	return resource.ParseQuantity(text)
}

// Parse reads amounts. An error names the resource.
func (a Amounts) Parse() (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if problems := utilvalidation.IsQualifiedName(name); len(problems) > 0 {
			return nil, fmt.Errorf("%.80q cannot be the name of a resource", name)
		}
		amount, err := Amount(a[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list[corev1.ResourceName(name)] = amount
	}
	return list, nil
}
