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

// Package quotapath finds the quota of a path: root.organization1.ray is the quota ray below organization1. It is pure:
// from a path and the tree it computes the name of a quota.
package quotapath

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koordinator-sh/koordinator/apis/extension"
)

const (
	// Root is the first element of every path: the root quota of Koordinator. It is above all quotas of all trees. So the
	// second element is a quota without a parent, such as the root of one of several trees.
	Root = "root"
	// MostElements is how many elements a path may have, root included.
	MostElements = 8
	// MostAbove is how many quotas may be above the one that a path names.
	MostAbove = MostElements - 2
	// longest path, in bytes: as long as the longest name of an object.
	longest = 253
)

var (
	// ErrMalformed is of a text that is no path.
	ErrMalformed = errors.New("it is not the path of a quota")
	// ErrUnknown is of a path that leads to no quota.
	ErrUnknown = errors.New("the path leads to no quota")
)

// Tree has the parents of the quotas of each name, RootQuotaName of Koordinator for none. A name has one parent, unless
// several namespaces have an ElasticQuota of that name.
type Tree map[string][]string

// Elements of a path, from root on; the error is ErrMalformed. An element is the name of one quota, so a quota with a
// dot in its name has no path.
func Elements(path string) ([]string, error) {
	elements := strings.SplitN(path, ".", MostElements+1)
	switch {
	case len(path) > longest || len(elements) > MostElements:
		return nil, fmt.Errorf("%w: it has more than %d elements or %d bytes", ErrMalformed, MostElements, longest)
	case len(elements) < 2 || elements[0] != Root:
		return nil, fmt.Errorf("%w: %q does not begin with %q", ErrMalformed, path, Root+".")
	}
	for _, element := range elements {
		if len(validation.IsDNS1123Label(element)) > 0 {
			return nil, fmt.Errorf("%w: element %q of %q is not the name of a quota", ErrMalformed, element, path)
		}
	}
	return elements, nil
}

// Quota is the name of the quota that a path names, whether there is such a quota or not; "" for no path.
func Quota(path string) string {
	elements, err := Elements(path)
	if err != nil {
		return ""
	}
	return elements[len(elements)-1]
}

// Within says whether a path is that of a subtree, or leads below it. The subtree root has all paths.
func Within(path, subtree string) bool {
	_, err := Elements(path)
	return err == nil && (path == subtree || strings.HasPrefix(path, subtree+"."))
}

// Resolve returns the quota of a path, if the tree has exactly this path. The errors are ErrMalformed and ErrUnknown.
// The answer does not depend on whether a quota of that name is elsewhere.
func Resolve(path string, tree Tree) (string, error) {
	elements, err := Elements(path)
	if err != nil {
		return "", err
	}
	above := extension.RootQuotaName
	for i, name := range elements[1:] {
		below := false
		for _, parent := range tree[name] {
			below = below || parent == above
		}
		switch {
		case !below:
			return "", fmt.Errorf("%w: %q has no quota %q below %q", ErrUnknown, path, name, elements[i])
		case len(tree[name]) > 1:
			return "", fmt.Errorf("%w: several ElasticQuotas have the name %q", ErrUnknown, name)
		}
		above = name
	}
	return above, nil
}
