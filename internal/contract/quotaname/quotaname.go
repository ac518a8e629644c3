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

// Package quotaname derives names of ElasticQuotas from names of other objects.
package quotaname

import (
	"fmt"
	"hash/fnv"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// BuiltInPrefix begins the names of quotas that Koordinator makes itself.
const BuiltInPrefix = "koordinator-"

// maxLength of a name that is written into labels, in bytes.
const maxLength = utilvalidation.LabelValueMaxLength

// Of makes the name of an ElasticQuota of any text. It is in lower case, with '-' for every character that an object's
// name cannot have. A hash replaces the end of a name that is longer than a label can be. The name is empty if no
// character of the text can be used.
func Of(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '-'
		}
	}, text)
	name = strings.Trim(name, "-.")
	if len(name) > maxLength {
		h := fnv.New32a()
		_, _ = h.Write([]byte(text))
		name = fmt.Sprintf("%s-%08x", strings.TrimRight(name[:maxLength-9], "-."), h.Sum32())
	}
	return name
}

// Usable says whether an ElasticQuota of somebody else than Koordinator can have the name.
func Usable(name string) bool {
	return name != "" && len(name) <= maxLength && len(utilvalidation.IsDNS1123Subdomain(name)) == 0 &&
		!strings.HasPrefix(name, BuiltInPrefix)
}
