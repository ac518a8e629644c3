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

package visibility

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

var update = flag.Bool("golden", false, "write the golden files")

// firm has 4 cpu, of which each of two quotas has a share of 2.
type firm struct{ tree }

func (firm) All() []string { return []string{"firm", "red", "blue"} }
func (firm) Observe([]string) ([]admission.Quota, []string) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": 1000 * n}) }
	return []admission.Quota{
		{Name: "root", Limit: cpu(16), Max: cpu(16)},
		{Name: "firm", Parent: "root", Limit: cpu(4), Max: cpu(4), Min: cpu(4)},
		{Name: "red", Parent: "firm", Limit: cpu(2), Max: cpu(4), Min: cpu(0), Shared: true},
		{Name: "blue", Parent: "firm", Limit: cpu(2), Max: cpu(4), Min: cpu(0), Shared: true},
	}, nil
}

// inFirm is a unit of the quota of its namespace that asks for so many cpu.
func inFirm(namespace, name, phase, cpu string, priority int64) *unstructured.Unstructured {
	u := madeUnit(namespace, name, phase, "shared")
	u.SetLabels(map[string]string{"quota.scheduling.koordinator.sh/name": namespace})
	u.Object["spec"].(map[string]any)["request"] = map[string]any{"cpu": cpu}
	u.Object["spec"].(map[string]any)["priority"] = priority
	return u
}

// sharedFirm has a job of red that holds more than its share, and a head of blue that asks for more than its own.
func sharedFirm(t *testing.T) *Reader {
	t.Helper()
	e := driveOn(t, clocktesting.NewFakeClock(start), firm{})
	e.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shared"}, "spec": map[string]any{"queuePolicy": "Block"},
	}}, false)
	e.FeedUnit(inFirm("red", "running", "Running", "3", 9), false)
	e.FeedUnit(inFirm("blue", "secret", "Enqueued", "4", 8), false)
	e.FeedUnit(inFirm("red", "second", "Enqueued", "1", 7), false)
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	return NewReader(stepped{e}, clocktesting.NewFakeClock(start))
}

// readers may read these namespaces; all of them is one.
func readers(namespaces ...string) func(context.Context, string) bool {
	return holders.Rights(authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			for _, namespace := range namespaces {
				if a.GetNamespace() == namespace && a.GetUser().GetName() == "u" && a.GetResource() == "units" {
					return authorizer.DecisionAllow, "", nil
				}
			}
			return authorizer.DecisionDeny, "", nil
		}))
}

// The job that must end for the head of a queue is in another quota. Its name is for those who may read its namespace;
// others learn the amount. The plugin has tests that read these answers.
func TestWhoMustEnd(t *testing.T) {
	r := sharedFirm(t)
	h := served(t, r, anybody)
	for name, c := range map[string]struct {
		path string
		may  []string
	}{
		"share-tenant":   {"/namespaces/blue/units/secret", nil},
		"share-lead":     {"/namespaces/blue/units/secret", []string{"red"}},
		"share-operator": {"/namespaces/red/units/second", []string{""}},
		"share-second":   {"/namespaces/red/units/second", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r.MayRead = readers(c.may...)
			answer := call(t, h, http.MethodGet, base+c.path, "u", &v1alpha1.Unit{})
			require.Equal(t, http.StatusOK, answer.Code, answer.Body)
			file := filepath.Join("testdata", name+".json")
			if *update {
				var text bytes.Buffer
				require.NoError(t, json.Indent(&text, answer.Body.Bytes(), "", "  "))
				require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.JSONEq(t, string(want), answer.Body.String())
		})
	}
}
