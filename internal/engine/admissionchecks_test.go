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

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autoscaling "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/checks"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/labeltext"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects/objectstest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// check makes an AdmissionCheck of this controller, whose condition Active has this status; none if it is empty.
func (r *rig) check(name, controller, active string) { r.checkWith(name, controller, active, nil) }

// checkListing makes one that is active, and lists these keys.
func (r *rig) checkListing(name, keys string) {
	r.checkWith(name, "example.com/"+name, "True", map[string]any{v1alpha1.AnnotationPodUpdateKeys: keys})
}

func (r *rig) checkWith(name, controller, active string, annotations map[string]any) {
	c := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "AdmissionCheck",
		"metadata": map[string]any{"name": name, "annotations": annotations},
		"spec":     map[string]any{"controllerName": controller},
	}}
	if active != "" {
		c.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Active", "status": active, "reason": "Said", "message": "so it is",
			"lastTransitionTime": testStart.Format(time.RFC3339),
		}}}
	}
	r.drive.FeedCheck(c, false)
	r.step()
}

// answers plays the controllers of the checks: check=State, and whatever else they write.
func (r *rig) answers(key string, states map[string]string, more ...func(answer map[string]any)) {
	r.t.Helper()
	r.editStatus(key, func(status map[string]any) {
		for _, of := range status["admissionChecks"].([]any) {
			answer := of.(map[string]any)
			if state, ok := states[answer["name"].(string)]; ok {
				answer["state"], answer["message"] = state, "it said so"
				for _, change := range more {
					change(answer)
				}
			}
		}
	})
}

// checked is a queue whose units have to pass "slow", and those that are labelled with tier=gpu "budget", too.
func checked(t *testing.T) *rig {
	r := newRig(t, quotasOf(4, testQuota))
	r.createQueue(testQuota, map[string]any{"admissionChecks": []any{
		map[string]any{"name": "slow", "timeoutSeconds": int64(600)},
		map[string]any{"name": "budget", "labelSelector": map[string]any{"matchLabels": map[string]any{"tier": "gpu"}}},
	}, "timeouts": map[string]any{"checkSeconds": int64(60)}})
	return r.lead()
}

func gpu(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["tier"] = "gpu"
	u.SetLabels(labels)
}

func statesOf(t *testing.T, r *rig, key string) (states []string) {
	value, _, err := unstructured.NestedFieldNoCopy(r.api.get(key).Object, "status", "admissionChecks")
	require.NoError(t, err)
	list, _ := value.([]any)
	for _, of := range list {
		states = append(states, of.(map[string]any)["name"].(string)+"="+of.(map[string]any)["state"].(string))
	}
	return states
}

// Quota is reserved first, then checks are asked, and only then may pods go.
func TestAdmissionChecks(t *testing.T) {
	r := checked(t)
	r.job("a", "job-a")
	key := r.unit("a", 2, withConsumer("job-a"), gpu)
	plain := r.unit("plain", 1)
	r.step()
	require.Empty(t, r.decisions(), "its checks do not exist")
	r.sendQueues()
	require.Equal(t, string(unit.ReasonCheckNotFound), r.active(testQuota).Reason)
	r.check("slow", "kueue.x-k8s.io/multikueue", "True")
	r.check("budget", "example.com/budget", "")
	r.advance(time.Minute)
	r.sendQueues()
	require.Equal(t, string(unit.ReasonCheckInactive), r.active(testQuota).Reason)
	require.Contains(t, r.active(testQuota).Message, "of Kueue")
	r.check("slow", "example.com/slow", "True")
	require.Empty(t, r.decisions())
	r.check("budget", "example.com/budget", "False")
	require.Empty(t, r.decisions())
	r.check("budget", "example.com/budget", "True")

	require.Len(t, r.decisions(), 2)
	first := podFor("a-0", "job-a", "1")
	r.pods(first)
	r.send(lostAnswer)
	r.send()
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseReserved, u.Phase)
	require.Equal(t, "cpu: 2", u.Held.String())
	require.Equal(t, metav1.ConditionTrue, u.Condition(v1alpha1.ConditionQuotaReserved).Status)
	admitted := u.Condition(v1alpha1.ConditionAdmitted)
	require.Equal(t, metav1.ConditionFalse, admitted.Status)
	require.Equal(t, "WaitingForAdmissionChecks", admitted.Reason)
	require.Equal(t, "waits for admission checks: slow, budget", admitted.Message)
	require.Equal(t, []string{"slow=Pending", "budget=Pending"}, statesOf(t, r, key))
	require.Equal(t, []string{"slow=Pending"}, statesOf(t, r, plain))
	require.False(t, r.engine.Snapshot().Granted(first.UID), "its quota counts, its pods do not go")
	require.Equal(t, "cpu: 3", r.outstanding(testQuota))

	r.answers(key, map[string]string{"slow": "Ready"})
	require.Empty(t, r.decisions())
	r.answers(key, map[string]string{"budget": "Ready"})
	require.Equal(t, statuswrite.Dequeue, r.decision().Kind)
	require.False(t, r.engine.Snapshot().Granted(first.UID), "it may not have been written")
	r.send(lost)
	r.send(lostAnswer)
	require.False(t, r.engine.Snapshot().Granted(first.UID))
	r.advance(5 * time.Second)
	r.send()
	u = unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseDequeued, u.Phase)
	require.Equal(t, "admitted, attempt 1; passed admission checks: slow, budget",
		u.Condition(v1alpha1.ConditionAdmitted).Message)
	require.EqualValues(t, 1, u.Attempts)
	require.True(t, r.engine.Snapshot().Granted(first.UID))
	require.Equal(t, []string{"team/a-0"}, r.activated)
	require.Equal(t, "cpu: 3", r.outstanding(testQuota))
	r.sound()
}

// An answer about a former reservation says nothing about the next one, and a late answer about it is refused.
func TestAnswersOfAFormerReservation(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	key := r.unit("a", 2)
	r.step()
	r.send()
	r.answers(key, map[string]string{"slow": "Retry"}, func(a map[string]any) { a["requeueAfterSeconds"] = int64(30) })
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
	require.EqualValues(t, 1, u.Requeues)
	require.Equal(t, string(unit.ReasonCheckRetry), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.Contains(t, u.Condition(v1alpha1.ConditionEvicted).Message, "it said so")
	require.WithinDuration(t, r.clock.Now().Add(30*time.Second), u.RequeueAt, 2*time.Second)
	require.Equal(t, []string{"slow=Retry"}, statesOf(t, r, key), "for a person to read")
	require.Equal(t, "", r.outstanding(testQuota))

	r.answers(key, map[string]string{"slow": "Ready"})
	r.advance(31 * time.Second)
	r.send()
	require.Equal(t, unit.PhaseReserved, unitFrom(r.api.get(key)).Phase)
	require.Equal(t, []string{"slow=Pending"}, statesOf(t, r, key))
	require.Empty(t, r.decisions(), "nobody has answered")

	r.answers(key, map[string]string{"slow": "Rejected"})
	r.send()
	u = unitFrom(r.api.get(key))
	target := u.Condition(v1alpha1.ConditionDeactivationTarget)
	require.Equal(t, string(unit.ReasonCheckRejected), target.Reason)
	require.Contains(t, target.Message, `admission check "slow" rejects the job: it said so`)
	r.advance(24 * time.Hour)
	require.Empty(t, r.decisions())

	// Its queue asks for no check any more when somebody makes it active again: nothing is left of the answers.
	r.queueWith(testQuota, map[string]any{})
	r.setActive(key, true)
	r.send()
	u = unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseDequeued, u.Phase)
	require.Empty(t, statesOf(t, r, key))
	r.sound()
}

// Two checks ask for what cannot both be; one of them answers nothing in time.
func TestChecksThatContradictEachOther(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	key := r.unit("a", 2, gpu)
	r.step()
	r.send()
	for check, zone := range map[string]string{"slow": "a", "budget": "b"} {
		r.answers(key, map[string]string{check: "Ready"}, func(a map[string]any) {
			a["podSetUpdates"] = []any{map[string]any{"name": "main", "nodeSelector": map[string]any{"zone": zone}}}
		})
	}
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
	require.Equal(t, string(unit.ReasonCheckConflict), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.Contains(t, u.Message, `different values of nodeSelector "zone" in pod set "main"`)

	r.advance(2 * time.Minute)
	r.send()
	u = unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseReserved, u.Phase)
	require.False(t, u.AskedWrites, "the answers about the former reservation are gone")
	require.Empty(t, r.engine.facts.resolve(u).Checks.Conflict)
	r.answers(key, map[string]string{"slow": "Ready"})
	r.advance(59 * time.Second)
	require.Empty(t, r.decisions())
	r.advance(2 * time.Second)
	r.send()
	u = unitFrom(r.api.get(key))
	require.Equal(t, string(unit.ReasonCheckTimeout), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.Contains(t, u.Message, "within 1m0s")
	r.sound()
}

// Updates of checks are in the templates of a job until the controller says that they are removed.
func TestTemplatesAreRestoredBeforeQuotaIsReservedAgain(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	r.job("a", "job-a")
	key := r.unit("a", 2, withConsumer("job-a"))
	r.step()
	r.send()
	r.answers(key, map[string]string{"slow": "Ready"}, func(a map[string]any) {
		a["podSetUpdates"] = []any{map[string]any{"name": "main", "nodeSelector": map[string]any{"x": "y"}}}
	})
	r.send()
	require.Equal(t, unit.PhaseDequeued, unitFrom(r.api.get(key)).Phase)
	r.setActive(key, false)
	r.send()
	r.setActive(key, true)
	r.advance(time.Minute)
	require.Empty(t, r.decisions())
	reason, _, _ := r.engine.core.Read().Why(key)
	require.Equal(t, unit.ReasonRestoring, reason)
	r.answers(key, map[string]string{"slow": "Ready"}, func(a map[string]any) { delete(a, "podSetUpdates") })
	r.advance(time.Second)
	require.Len(t, r.decisions(), 1)
	r.send()
	require.Equal(t, unit.PhaseReserved, unitFrom(r.api.get(key)).Phase)
	r.sound()
}

// The state is rebuilt while a reserved unit is released.
func TestAReservedUnitWhileTheStateIsBuiltAnew(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	r.job("a", "job-a")
	key := r.unit("a", 2, withConsumer("job-a"))
	pod := podFor("a-0", "job-a", "1")
	r.pods(pod)
	r.engine.core.Discard(recovery.Difference)
	r.step()
	require.Len(t, r.decisions(), 1)
	r.send()
	r.answers(key, map[string]string{"slow": "Ready"})
	r.engine.core.Discard(recovery.Difference)
	r.advance(time.Second)
	require.Len(t, r.decisions(), 1)
	require.False(t, r.engine.Snapshot().Granted(pod.UID))
	require.Equal(t, "cpu: 2", r.outstanding(testQuota))
	r.send()
	require.True(t, r.engine.Snapshot().Granted(pod.UID))
	require.Equal(t, unit.PhaseDequeued, unitFrom(r.api.get(key)).Phase)
	r.sound()
}

// An unreadable object asks for a surplus check, never for a missing one.
func TestChecksThatCannotBeRead(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	r.queueWith(testQuota, map[string]any{"admissionChecks": []any{map[string]any{
		"name": "slow", "labelSelector": map[string]any{"matchExpressions": []any{map[string]any{
			"key": "a", "operator": "Odd"}}},
	}}})
	r.unit("a", 1)
	many := r.unit("many", 1, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{v1alpha1.LabelQuotaName: testQuota, "x": strings.Repeat("y", labeltext.Max)})
	})
	r.step()
	require.Empty(t, r.decisions())
	reason, message, _ := r.engine.core.Read().Why("team/a")
	require.Equal(t, unit.ReasonCheckInactive, reason)
	require.Contains(t, message, `labelSelector of admission check "slow"`)
	reason, _, _ = r.engine.core.Read().Why(many)
	require.Equal(t, unit.ReasonInvalidRequest, reason)

	c := objects.DecodeCheck(&objects.WireCheck{WireObject: objects.WireObject{Spec: []byte(`{"controllerName":7}`)}})
	require.False(t, c.Active)
	u := readUnit(t, objectstest.Unit(1, 7, `{"phase":"Reserved","admissionChecks":{"a":"b"},"attempts":1}`))
	require.Nil(t, u.Checks)
	require.Equal(t, unit.PhaseReserved, u.Phase)
}

// With the feature gate off nothing passes checks over: what is reserved is given back, and nothing new is reserved
// where a queue names some.
func TestAdmissionChecksAreOff(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	key := r.unit("a", 2)
	r.step()
	r.send()
	require.Equal(t, unit.PhaseReserved, unitFrom(r.api.get(key)).Phase)

	off := rigOn(t, r.api, r.quotas, r.clock, func(c *Config) { c.AdmissionChecksOff = true })
	off.createQueue("plain", map[string]any{})
	off.drive.FeedQueue(off.readQueue(testQuota), false)
	off.feed(key).lead()
	waiting := off.unit("b", 1)
	free := off.unit("c", 1, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["queue"] = "plain" })
	off.check("slow", "example.com/slow", "True")
	require.Equal(t, statuswrite.Evict, off.decision().Kind, "nobody says what else it would have to pass")
	off.send()
	require.Equal(t, string(unit.ReasonChecksChanged),
		unitFrom(off.api.get(key)).Condition(v1alpha1.ConditionEvicted).Reason)
	require.Equal(t, free, off.decision().Key.String(), "queues that name no check go on")
	off.send()
	off.advance(10 * time.Second)
	off.sendQueues()
	require.Equal(t, string(unit.ReasonCheckInactive), off.active(testQuota).Reason)
	require.Equal(t, metav1.ConditionFalse, off.active(testQuota).Status)
	require.Contains(t, off.active(testQuota).Message, "feature gate AdmissionChecks")
	require.Equal(t, metav1.ConditionTrue, off.active("plain").Status)
	require.Equal(t, "cpu: 1", off.outstanding(testQuota))

	off.answers(key, map[string]string{"slow": "Ready"})
	require.Empty(t, off.decisions())
	require.NotEqual(t, unit.PhaseReserved, unitFrom(off.api.get(waiting)).Phase)
	off.sound()

	on := rigOn(t, off.api, off.quotas, off.clock)
	on.drive.FeedQueue(on.readQueue(testQuota), false)
	on.check("slow", "example.com/slow", "True")
	on.check("budget", "example.com/budget", "True")
	on.feed(key).feed(free).feed(waiting).lead()
	on.send()
	on.send()
	require.Equal(t, unit.PhaseReserved, unitFrom(on.api.get(waiting)).Phase, "asked, as soon as it is on again")
}

// A check of a controller that takes longer by nature has its own time-out, where its queue names none.
func TestTheTimeoutOfAChecksController(t *testing.T) {
	a := checks.NewBook(false, time.Minute, map[string]time.Duration{v1alpha1.ProvisioningController: time.Hour})
	a.Set("nodes", &objects.Check{Controller: v1alpha1.ProvisioningController})
	a.Set("budget", &objects.Check{Controller: "example.com/budget"})
	named := []queue.AdmissionCheck{
		{Name: "nodes", Timeout: objects.DefaultTimeout}, {Name: "budget", Timeout: objects.DefaultTimeout},
		{Name: "missing", Timeout: objects.DefaultTimeout}, {Name: "nodes", Timeout: time.Second}, {Name: "nodes"},
	}
	var got []time.Duration
	for _, c := range a.Resolved(named) {
		got = append(got, c.Timeout)
	}
	require.Equal(t, []time.Duration{time.Hour, time.Minute, time.Minute, time.Second, 0}, got)
	require.Equal(t, objects.DefaultTimeout, named[0].Timeout, "the queue stays as it is")
}

// A check takes its answer back while the job runs. The number of its retries stays until all pods were ready.
func TestACheckTakesItsAnswerBack(t *testing.T) {
	r := checked(t)
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	key := r.unit("a", 2)
	r.step()
	r.send()
	r.answers(key, map[string]string{"slow": "Ready"}, func(a map[string]any) {
		a["podSetUpdates"] = []any{map[string]any{"name": "main", "nodeSelector": map[string]any{"zone": "a"}}}
	})
	r.send()
	require.Equal(t, unit.PhaseDequeued, unitFrom(r.api.get(key)).Phase)
	r.answers(key, map[string]string{"slow": "Retry"}, func(a map[string]any) { a["retryCount"] = int64(2) })
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
	require.Equal(t, string(unit.ReasonCheckRetry), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.Contains(t, u.Message, `admission check "slow" takes back that the job may go`)
	require.Equal(t, "", r.outstanding(testQuota))
	r.advance(2 * time.Minute)
	r.send()
	require.Equal(t, unit.PhaseReserved, unitFrom(r.api.get(key)).Phase)
	require.Equal(t, []string{"slow=Pending"}, statesOf(t, r, key))
	text, err := r.api.get(key).MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"retryCount":2`)
	require.NotContains(t, string(text), `"zone"`)
	r.sound()
}

// Somebody resumes a job without the updates of its checks, and gains nothing by it.
func TestPodsThatLackWhatChecksAskedForWait(t *testing.T) {
	r := checked(t)
	r.job("a", "job-a")
	r.check("slow", "example.com/slow", "True")
	r.check("budget", "example.com/budget", "True")
	key := r.unit("a", 2, withConsumer("job-a"))
	r.step()
	r.send()
	asks := func(updates ...any) {
		r.answers(key, map[string]string{"slow": "Ready"}, func(answer map[string]any) { answer["podSetUpdates"] = updates })
	}
	zone := func(name string) any {
		return map[string]any{"name": "main", "nodeSelector": map[string]any{"zone": name}}
	}
	asks(zone("a"))
	r.send()
	require.Equal(t, unit.PhaseDequeued, unitFrom(r.api.get(key)).Phase)

	without, with := podFor("a-0", "job-a", "1"), podFor("a-1", "job-a", "1")
	with.Spec.NodeSelector = map[string]string{"zone": "a"}
	r.pods(without, with)
	require.False(t, r.engine.Snapshot().Granted(without.UID), "its pods are not what was checked")
	require.Equal(t, `nodeSelector zone=a of pod set "main"`, r.engine.Snapshot().Lacking(without.UID))
	require.True(t, r.engine.Snapshot().Granted(with.UID))
	require.Empty(t, r.engine.Snapshot().Lacking(with.UID))
	r.activated = nil
	mended := without.DeepCopy()
	mended.ResourceVersion, mended.Spec.NodeSelector = "2", with.Spec.NodeSelector
	r.pods(mended)
	require.True(t, r.engine.Snapshot().Granted(mended.UID))
	require.Equal(t, []string{"team/a-0"}, r.activated)

	asks(zone("b"))
	require.Contains(t, r.engine.Snapshot().Lacking(with.UID), "zone=b", "it asks for something else by now")
	asks(zone("b"), zone("c"))
	require.Contains(t, r.engine.Snapshot().Lacking(with.UID), "different values")
	asks(zone(strings.Repeat("x", 1<<20)))
	require.Contains(t, r.engine.Snapshot().Lacking(with.UID), "at most 16384 are read")
	asks()
	require.True(t, r.engine.Snapshot().Granted(with.UID))
	r.sound()
}

// A check writes the keys that its AdmissionCheck lists, and node selectors, tolerations and the annotations of
// autoscalers.
func TestACheckWritesTheKeysThatItsObjectLists(t *testing.T) {
	team := map[string]any{"labels": map[string]any{"example.com/team": "red"}}
	autoscaler := map[string]any{
		"annotations":  map[string]any{autoscaling.AnnotationConsume: "r", autoscaling.AnnotationClass: "c"},
		"nodeSelector": map[string]any{"zone": "a"}, "tolerations": []any{map[string]any{"key": "gpu", "operator": "Exists"}},
	}
	for name, tc := range map[string]struct {
		listed string
		asks   map[string]any
		want   string // lacking: the unit is put off
	}{
		"a label":         {"", team, `label "example.com/team"`},
		"an annotation":   {"", map[string]any{"annotations": map[string]any{"sidecar": "on"}}, `annotation "sidecar"`},
		"of autoscalers":  {"", autoscaler, ""},
		"a listed label":  {"a, example.com/team", team, ""},
		"a listed domain": {"example.com/*", team, ""},
		"another domain":  {"le.com/*,*", team, `label "example.com/team"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := checked(t)
			r.checkListing("slow", tc.listed)
			r.checkListing("budget", "")
			r.job("a", "job-a")
			key := r.unit("a", 1, withConsumer("job-a"))
			r.step()
			r.send()
			tc.asks["name"] = "main"
			r.answers(key, map[string]string{"slow": "Ready"}, func(a map[string]any) { a["podSetUpdates"] = []any{tc.asks} })
			r.send()
			u := unitFrom(r.api.get(key))
			if tc.want == "" {
				require.Equal(t, unit.PhaseDequeued, u.Phase)
				return
			}
			require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
			require.Equal(t, string(unit.ReasonCheckConflict), u.Condition(v1alpha1.ConditionEvicted).Reason)
			require.Contains(t, u.Message, tc.want)
			require.Contains(t, u.Message, `admission check "slow"`)
			r.sound()
		})
	}
}

// A key that is not listed gains nothing where it is asked for after the unit was released.
func TestACheckThatAsksForAKeyLater(t *testing.T) {
	r := checked(t)
	r.checkListing("slow", "team")
	r.checkListing("budget", "")
	r.job("a", "job-a")
	key := r.unit("a", 1, withConsumer("job-a"))
	r.step()
	r.send()
	r.answers(key, map[string]string{"slow": "Ready"})
	r.send()
	r.answers(key, map[string]string{"slow": "Ready"}, func(a map[string]any) {
		a["podSetUpdates"] = []any{map[string]any{"name": "main", "labels": map[string]any{"team": "red"}}}
	})
	pod := podFor("a-0", "job-a", "1")
	pod.Labels["team"] = "red"
	r.pods(pod)
	require.True(t, r.engine.Snapshot().Granted(pod.UID))
	r.checkListing("slow", "other")
	require.False(t, r.engine.Snapshot().Granted(pod.UID))
	require.Contains(t, r.engine.Snapshot().Lacking(pod.UID), `label "team"`)
	r.checkListing("slow", "team")
	require.True(t, r.engine.Snapshot().Granted(pod.UID))
	r.sound()
}
