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

package jobkind

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An author of owner references can make objects own each other.
func TestUpEndsWhereOwnersOwnEachOther(t *testing.T) {
	other := map[types.UID]*metav1.OwnerReference{"a": {UID: "b"}, "b": {UID: "a"}}
	made := func(o *metav1.OwnerReference) *metav1.OwnerReference { return other[o.UID] }
	var seen []types.UID
	for o := range Up(other["b"], made) {
		if seen = append(seen, o.UID); len(seen) > MostOwners {
			break
		}
	}
	require.Equal(t, []types.UID{"a", "b", "a", "b", "a", "b"}, seen)
}
