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

package screen

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// answered is what the server says of a unit to a reader; its own tests write that.
func answered(t *testing.T, name string) *Story {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "visibility", "testdata", name+".json"))
	require.NoError(t, err)
	live := &visibility.Unit{}
	require.NoError(t, json.Unmarshal(text, live))
	u := waiting(live.Name, live.Status.Reason, live.Status.Message)
	u.Namespace, u.Status.Effective = live.Namespace, &v1alpha1.Effective{Requested: amounts(live.Status.Requested)}
	return &Story{Unit: u, Live: live}
}

// The job at the front asks for more than its share, and a job of another quota holds what it needs: that one must end.
func TestTheHolderIsInAnotherQuota(t *testing.T) {
	for name, reserved := range map[string]string{
		"share-tenant": "0", "share-lead": "0", "share-second": "3", "share-operator": "3",
	} {
		s := answered(t, name)
		s.Quota = quotaOf(s.Live.Status.Quota, "2", "4", reserved)
		golden(t, "why-"+name, func(b *bytes.Buffer) error { return Why(b, now, s) })
	}
}
