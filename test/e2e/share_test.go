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

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Three quotas share 15 cores. While b and c have jobs, a has a share of 3 and can rightfully get 5. The first job of a
// asks for 5, and small jobs of b and c end and wait without pause: it starts all the same. A job of 6 is told how much
// it can get and keeps nobody waiting.
func TestAJobLargerThanItsShareStarts(t *testing.T) {
	const each = 48 // enough to wait still when larger has been told why it waits
	c := visibilityCluster(t, "share")
	c.bind(t, "root", "cluster-admin", "")
	ns := c.namespace(t, "share")
	c.quota(t, ns, "all", 15, 15, isParent())
	c.quota(t, ns, "a", 2, 15, under("all"), withPolicy(schedulingv1alpha1.PolicyBlock))
	others := []string{"b", "c"}
	for _, quota := range others {
		c.quota(t, ns, quota, 5, 15, under("all"))
	}
	name := func(quota string, i int) string { return fmt.Sprintf("%s-%02d", quota, i) }
	for i := range each {
		for _, quota := range others {
			c.create(t, newJob(ns, name(quota, i), suspended, ofQuota(quota), cpu("2"), runs(3*second)))
		}
	}
	for _, quota := range others {
		c.waitPhase(t, ns, name(quota, 2), schedulingv1alpha1.PhaseRunning)
	}

	c.create(t, newJob(ns, "head", suspended, ofQuota("a"), pods(5), runs(3*second)))
	c.waitPhase(t, ns, "head", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "larger", suspended, ofQuota("a"), pods(6), priority(2)))
	c.waitReason(t, ns, "larger", "ExceedsGuaranteedShare")
	c.create(t, newJob(ns, "behind", suspended, ofQuota("a"), priority(1)))
	why, err := c.kubectlJobqueue(t, "root", "why", "larger", "-n", ns, "-o", "wide")
	require.NoError(t, err)
	t.Log("\n" + why)
	require.Contains(t, why, "Reason: ExceedsGuaranteedShare")
	require.Contains(t, why, "cpu: request 6, but at most 5 while other quotas use what they are guaranteed")
	c.waitDone(t, ns, 2*each+3, 2*time.Minute)

	started := func(name string) time.Time { return c.unit(t, ns, name).Status.LastAllocateTime.Time }
	head := started("head")
	longest, later := time.Duration(0), map[string]int{}
	for i := range each {
		for _, quota := range others {
			held := c.job(t, ns, name(quota, i)).Status.CompletionTime.Sub(started(name(quota, i)))
			longest = max(longest, held)
			if started(name(quota, i)).After(head) {
				later[quota]++
			}
		}
	}
	waited := head.Sub(c.job(t, ns, "head").CreationTimestamp.Time)
	t.Logf("the head waited for %v, others ran for %v at most, and %v of them came later", waited, longest, later)
	require.LessOrEqual(t, waited, 4*longest, "the longest job, times the number of quotas and one")
	for _, quota := range others {
		require.NotZero(t, later[quota], "jobs of quota %s waited when the head started", quota)
	}
	require.True(t, started("behind").Before(started("larger")), "a job that cannot be had stops nobody")
}
