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

package codec

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// The kind is what client-go finds, wherever it is. An event of a watch has none, whatever its object says.
func TestLeadingKind(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit","metadata":{}}`,
		`{"kind":"QueueUnitList","apiVersion":"scheduling.x-k8s.io/v1alpha1","items":[{"kind":"Other"}]}`,
		`{"metadata":{"kind":"Other"},"kind":"QueueUnit","apiVersion":"v1"}`,
		`{"kind":"QueueUnit","metadata":{},"apiVersion":"v1"}`,
		`{"kind":"","apiVersion":"","metadata":{}}`,
		`{"kind":"QueueUnit"}`,
		`{"type":"ADDED","object":{"kind":"QueueUnit","apiVersion":"v1"}}`,
		`{}`, `{"apiVersion":"a/b/c","kind":"QueueUnit"}`, `{"apiVersion":7,"kind":"QueueUnit"}`,
		`[]`, `"kind"`, `{"kind":"Queue`, ``,
	} {
		want, failed := json.DefaultMetaFactory.Interpret([]byte(text))
		found, err := leadingKind{}.Interpret([]byte(text))
		if failed != nil {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, found, text)
	}
}
