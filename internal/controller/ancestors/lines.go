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

// Package ancestors publishes, for the policies of tenancy, the quotas above each quota. A right to use a quota holds
// for the quotas below it, and a ValidatingAdmissionPolicy cannot read the tree of quotas.
package ancestors

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

// mostBytes of all lines: a ConfigMap has room for twice as much, and administrators write into it as well.
const mostBytes = 512 << 10

// Lines has one line for each quota that has quotas above it: its name and theirs, the nearest first. left is how many
// quotas have no line because all lines together would be too long.
func Lines(tree quotapath.Tree) (text string, left int) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		above := aboveOf(tree, name)
		if len(above) == 0 || len(name) > validation.LabelValueMaxLength {
			continue // a longer name is in no label
		}
		line := name + " " + strings.Join(above, " ") + "\n"
		if b.Len()+len(line) > mostBytes {
			left++
			continue
		}
		b.WriteString(line)
	}
	return b.String(), left
}

// Read has the quotas above each quota that has a line.
func Read(text string) map[string][]string {
	above := map[string][]string{}
	for line := range strings.Lines(text) {
		if names := strings.Fields(line); len(names) > 0 {
			above[names[0]] = names[1:]
		}
	}
	return above
}

// aboveOf are as many of the quotas above one as policies ask for. It ends where several quotas have one name: nobody
// knows which of their parents counts.
func aboveOf(tree quotapath.Tree, name string) (above []string) {
	for len(above) < quotapath.MostAbove {
		if len(tree[name]) != 1 {
			break
		}
		parent := tree[name][0]
		if parent == extension.RootQuotaName || len(tree[parent]) == 0 || slices.Contains(above, parent) {
			break
		}
		above, name = append(above, parent), parent
	}
	return above
}
