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
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

// A job that was evicted and runs again: its owner asks why it stopped.
func TestWhyAfterAnEviction(t *testing.T) {
	u := waiting("train", "", "")
	u.Status.Phase, u.Status.Attempts, u.Status.Effective.Held = v1alpha1.PhaseRunning, 2, "cpu: 4"
	s := &Story{Unit: u, Live: &visibility.Unit{}, Lost: &visibility.Record{
		Time: metav1.NewMicroTime(now.Add(-5 * time.Minute)), Event: visibility.RecordEvicted, Reason: "Reclaimed",
		Ran: &metav1.Duration{Duration: time.Minute},
	}}
	golden(t, "why-evicted", func(b *bytes.Buffer) error { return Why(b, now, s) })
	u.Status.Phase = v1alpha1.PhaseSucceed
	require.NotContains(t, Short(now, &Story{Unit: u})[0].Text, "holds", "its last amount is free again")
}

// shortageCases are shortages with words of their own.
func shortageCases() map[string]*Story {
	q := resource.MustParse
	of := func(list ...visibility.Shortage) *Story {
		u := waiting("train", "QuotaExceeded", "")
		live := &visibility.Unit{Status: visibility.UnitStatus{
			Queue: "shared", Quota: "research", Position: 1, Waiting: 1, Reason: "QuotaExceeded", Shortages: list,
		}}
		return &Story{Unit: u, Quota: quotaOf("research", "2", "20", "0"), Live: live}
	}
	x := func(level, bound, limit, reserved, free, missing string) visibility.Shortage {
		return visibility.Shortage{Level: level, Resource: "cpu", Bound: bound, Binds: true, Limit: q(limit),
			Reserved: q(reserved), Free: q(free), Request: q("4"), Missing: q(missing)}
	}
	leaf, level := x("research", "runtime", "2", "0", "2", "2"), x("science", "runtime", "6", "7", "-1", "5")
	level.Binds = false
	saturated := of(leaf, level)
	four := map[string]string{"a": "3", "b": "2", "c": "1", "d": "1"}
	saturated.Live.Status.Holders = heldBy("science", "lab", four, "0")

	firm := x("firm", "max", "20", "10", "2", "2")
	firm.Beyond, firm.Guaranteed = true, ptr.To(q("8"))
	kept := of(firm)
	kept.Live.Status.Holders = heldBy("firm", "lab", map[string]string{"big": "7"}, "3")

	total := x("root", "total", "12", "12", "0", "4")
	total.Unusable = ptr.To(q("8"))
	nodes := of(total)
	nodes.Live.Status.Holders = heldBy("root", "lab", nil, "12")

	claimed := x("firm", "max", "20", "18", "2", "10")
	claimed.ClaimedAhead, claimed.ClaimedIn = ptr.To(q("8")), "gpu"
	elsewhere := of(claimed)
	elsewhere.Live.Status.Holders = heldBy("firm", "lab", map[string]string{"big": "18"}, "0")

	own := x("research", "runtime", "2", "2", "0", "4")
	loan := of(own)
	loan.Quota = quotaOf("research", "2", "20", "2")
	loan.Live.Status.Holders = heldBy("research", "research", map[string]string{"mine": "2"}, "0")
	loan.Live.Status.Remarks = `not lent: units within their share wait at "firm"`

	jobs := x("research", "max", "5", "5", "0", "1")
	jobs.Resource, jobs.Request = "koord-queue/max-jobs", q("1")
	number := of(jobs)
	number.Live.Status.Holders = heldBy("research", "research", map[string]string{"a": "1", "b": "1"}, "3")
	number.Live.Status.Holders.Resource = jobs.Resource

	return map[string]*Story{
		"a level above uses its share":                saturated,
		"free quota is kept for others":               kept,
		"the cluster is too small, with closed nodes": nodes,
		"jobs of another queue claim":                 elsewhere,
		"no loan":                                     loan,
		"max-jobs":                                    number,
	}
}

func TestCauses(t *testing.T) {
	golden(t, "causes", func(b *bytes.Buffer) error {
		all := shortageCases()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(b, "## %s\n", name)
			if err := Why(b, now, all[name]); err != nil {
				return err
			}
		}
		return nil
	})
}
