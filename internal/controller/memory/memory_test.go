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

package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnObjectCreatedAnewBeginsAnew(t *testing.T) {
	m, key := Memory[int]{}, types.NamespacedName{Namespace: "team", Name: "j"}
	first := &metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "1"}
	next := &metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "2"}
	_, known := m.Named(key)
	require.False(t, known)
	*m.Of(first) = 7
	require.Equal(t, 7, *m.Of(first))
	require.Zero(t, *m.Of(next))
	_, known = m.Named(key)
	require.True(t, known)
	m.Forget(key)
	_, known = m.Named(key)
	require.False(t, known)
}
