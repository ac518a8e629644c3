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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// told lists the events of a job of this reason.
func (c *cluster) told(t *testing.T, namespace, job, reason string) (notes []string) {
	t.Helper()
	list, err := c.kube.CoreV1().Events(namespace).
		List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + job + ",involvedObject.kind=Job"})
	require.NoError(t, err)
	for _, e := range list.Items {
		if e.Reason == reason {
			notes = append(notes, e.Message)
		}
	}
	return notes
}

// Every pending job has a true reason in its unit and in one event, even behind the first of its kind. The columns of
// the unit show its queue and quota.
func TestWhoWaitsCanReadWhy(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "readers")
	c.quota(t, ns, "readers", 2, 2)
	c.create(t, newJob(ns, "holder", ofQuota("readers"), cpu("2"), runs(time.Hour)))
	c.waitPhase(t, ns, "holder", schedulingv1alpha1.PhaseRunning)
	behind := []string{"head", "second", "third"}
	for _, name := range behind {
		c.create(t, newJob(ns, name, suspended, ofQuota("readers"), cpu("1")))
	}
	const words = `quota "readers" has too little cpu left`
	for _, name := range behind {
		require.Equal(t, words, c.waitReason(t, ns, name, "QuotaExceeded"))
		c.waitEvent(t, ns, name, "Pending")
		require.Len(t, c.told(t, ns, name, "Pending"), 1)
		require.True(t, strings.HasPrefix(c.told(t, ns, name, "Pending")[0],
			"QuotaExceeded: "+words+"; for more: kubectl describe queueunit -n "+ns+" "))
		require.Equal(t, &schedulingv1alpha1.Effective{Queue: "readers", Quota: "readers", Requested: "cpu: 1"},
			c.unit(t, ns, name).Status.Effective)
	}
	require.Equal(t, "cpu: 2", c.unit(t, ns, "holder").Status.Effective.Held)

	// Another reason is told to all of them.
	c.setStopPolicy(t, "readers", schedulingv1alpha1.StopHold)
	for _, name := range behind {
		require.Equal(t, `queue "readers" is held`, c.waitReason(t, ns, name, "QueueHeld"))
	}
	versions := map[string]string{}
	for _, name := range behind {
		versions[name] = c.unit(t, ns, name).ResourceVersion
	}
	time.Sleep(15 * time.Second) // more than explainEvery
	for _, name := range behind {
		require.Equal(t, versions[name], c.unit(t, ns, name).ResourceVersion, "nothing moves, and nothing is written")
	}
}

// Doubts about a job are reported when it is queued.
func TestAJobThatCannotRunIsDoubted(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "doubts")
	c.quota(t, ns, "doubts", 4000, 4000)
	c.create(t, newJob(ns, "huge", suspended, ofQuota("doubts"), cpu("3000"), runs(time.Second)))
	c.waitEvent(t, ns, "huge", "Doubtful")
	require.Contains(t, c.told(t, ns, "huge", "Doubtful")[0], "3k of cpu, and no node that is there now has as much")
	c.create(t, newJob(ns, "elsewhere", suspended, ofQuota("doubts"), cpu("5000"), onNoNode))
	c.waitEvent(t, ns, "elsewhere", "Doubtful")
	const selects = "no node that is there now has the labels and names that a pod of elsewhere selects (recorded-on=true)"
	require.Contains(t, c.told(t, ns, "elsewhere", "Doubtful")[0], selects)
	c.bind(t, "doubter", "cluster-admin", ns)
	why, err := c.kubectlJobqueue(t, "doubter", "why", "elsewhere", "-n", ns)
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(why), " "), strings.TrimPrefix(selects, "no "))
	c.create(t, newJob(ns, "gang", suspended, ofQuota("doubts"), pods(2), gang("gang", 3), runs(time.Second)))
	c.waitEvent(t, ns, "gang", "Doubtful")
	require.Contains(t, c.told(t, ns, "gang", "Doubtful")[0], "asks for 3 pods and the job has 2")
}
