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
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// TestUpgrade: what the release before left, jobs that run and jobs that wait, goes on under the processes of this one.
// It begins with what hack/record-release.sh wrote down.
func TestUpgrade(t *testing.T) { upgradeFrom(t, readRecording(t, lastRelease)) }

// Definitions, rights and the ConfigMap of managed jobs are applied while processes of the release before run. They
// read the ConfigMap when they start, strictly: with a field that they do not know no scheduler would come up any
// more.
func TestTheReleaseBeforeCanReadWhichJobsAreManaged(t *testing.T) {
	text, err := os.ReadFile("../../manifests/base/controller/managed-jobs.yaml")
	require.NoError(t, err)
	now := managedJobsFields(t, text)
	before := managedJobsFields(t, readRecording(t, lastRelease).manifests)
	require.NotEmpty(t, before)
	require.Subset(t, before, now)
}

// managedJobsFields are the fields that are set in the ConfigMap of managed jobs, which is one of the documents.
func managedJobsFields(t *testing.T, manifests []byte) []string {
	t.Helper()
	for document := range strings.SplitSeq(string(manifests), "---\n") {
		configMap, fields := &corev1.ConfigMap{}, map[string]any{}
		if yaml.Unmarshal([]byte(document), configMap) != nil || configMap.Name != managedjobs.ConfigMap {
			continue
		}
		require.NoError(t, yaml.Unmarshal([]byte(configMap.Data[managedjobs.Key]), &fields))
		return slices.Sorted(maps.Keys(fields))
	}
	require.Fail(t, "there is no ConfigMap "+managedjobs.ConfigMap)
	return nil
}

// days is how long a job has been without a node in the recording.
const days = 72 * time.Hour

func upgradeFrom(t *testing.T, old *recording) {
	u := &upgrade{old: old, cluster: startBare(t, "upgrade", controlplane.Options{
		Components: controlplane.Minimal(),
	})}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()

	// The cluster as it was, but for the two processes, which have ended.
	require.NoError(t, u.ApplyKoordinatorCRDs(ctx))
	require.NoError(t, u.Apply(ctx, old.manifests))
	u.seen = u.followUnits(t, recordedCores)
	u.watch = observe(t, u.cluster, recordedCores)
	old.moveTo(time.Now().UTC().Truncate(time.Second))
	old.age("held", "unbound-for-days", days)
	old.place(t, u.cluster)
	require.NoError(t, u.StartBase(ctx, controlplane.ControllerManager, controlplane.KWOK))

	// The upgrade as docs/operators/upgrade.md has it: annotations of namespaces, definitions and rights, scheduler.
	_, err := u.kube.CoreV1().Namespaces().Patch(ctx, "full", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+schedulingv1alpha1.AnnotationMaxPriority+`":"1000"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, u.takeOver(ctx))
	require.NoError(t, u.installTrees(ctx))
	u.complete(t)
	u.settle(t)

	t.Run("jobs that run are left alone", u.runningIsLeftAlone)
	t.Run("what waits is not rewritten", u.waitingIsNotRewritten)
	t.Run("what is over is left alone", u.overIsLeftAlone)
	t.Run("queues and quotas are left alone", u.queuesAreLeftAlone)
	t.Run("an admitted job is resumed", u.unresumedGoesOn)
	t.Run("what has no pod on a node", u.heldGoesOn)
	t.Run("what was evicted", u.evictedComesBack)
	t.Run("what runs can be evicted", u.runningComesBack)
	t.Run("what was parked", u.parkedGoesOn)
	t.Run("jobs that run end and others follow", u.othersFollow)

	u.watch.clean(t, nil)
	u.seen.clean(t, "again/again")
	u.agrees(t)
}

// upgrade is a cluster in which the release before has left something.
type upgrade struct {
	*cluster
	old   *recording
	seen  *unitHistory
	watch *watched
}

// settle waits until the new processes have handled everything that they found: a later job has run, and an audit has
// found nothing.
func (u *upgrade) settle(t *testing.T) {
	t.Helper()
	ns := u.namespace(t, "after")
	u.quota(t, ns, ns, 1, 1)
	u.create(t, newJob(ns, "after", suspended, ofQuota(ns)))
	u.waitPhase(t, ns, "after", schedulingv1alpha1.PhaseSucceed)
	require.Eventually(t, func() bool {
		return u.metric(t, `scheduler_jobqueue_audits_total{`, `result="Clean"`) > 0
	}, soon, pace, "an audit")
	u.seen.catchUp(t)
}

// recorded is a unit as the release before left it.
func (u *upgrade) recorded(t *testing.T, namespace, name string) *schedulingv1alpha1.QueueUnit {
	t.Helper()
	o := u.old.find("QueueUnit", namespace, name)
	require.NotNil(t, o, "the recording has no unit %s/%s", namespace, name)
	return decodeUnit(t, o)
}

// units that were recorded in one of the phases.
func (u *upgrade) units(t *testing.T, phases ...schedulingv1alpha1.QueueUnitPhase) []*schedulingv1alpha1.QueueUnit {
	t.Helper()
	var in []*schedulingv1alpha1.QueueUnit
	for _, o := range u.old.all("QueueUnit") {
		if unit := decodeUnit(t, o); slices.Contains(phases, unit.Status.Phase) {
			in = append(in, unit)
		}
	}
	return in
}

// podUIDs of a job in the recording.
func (u *upgrade) podUIDs(namespace, job string) []types.UID {
	var uids []types.UID
	for _, o := range u.old.all("Pod") {
		if o.GetNamespace() == namespace && o.GetLabels()["job-name"] == job {
			uids = append(uids, o.GetUID())
		}
	}
	slices.Sort(uids)
	return uids
}

// samePods checks that a job has the pods that were recorded and no other.
func (u *upgrade) samePods(t *testing.T, namespace, job string) {
	t.Helper()
	pods := u.podsOf(t, namespace, job)
	require.NotEmpty(t, pods)
	for _, p := range pods {
		require.Nil(t, p.DeletionTimestamp, p.Name)
	}
	require.Equal(t, u.podUIDs(namespace, job), uidsOf(pods), "pods of %s/%s", namespace, job)
}

func uidsOf(pods []corev1.Pod) (uids []types.UID) {
	for i := range pods {
		uids = append(uids, pods[i].UID)
	}
	slices.Sort(uids)
	return uids
}

// No pod starts or ends, and each unit holds its former amount.
func (u *upgrade) runningIsLeftAlone(t *testing.T) {
	running := u.units(t, schedulingv1alpha1.PhaseRunning)
	require.NotEmpty(t, running)
	for _, before := range running {
		ns, name := before.Namespace, before.Name
		u.samePods(t, ns, name)
		require.False(t, *u.job(t, ns, name).Spec.Suspend, "%s/%s", ns, name)
		now := u.unit(t, ns, name)
		require.Equal(t, before.UID, now.UID)
		require.Equal(t, before.Status.Phase, now.Status.Phase, "%s/%s", ns, name)
		require.Equal(t, before.Status.Attempts, now.Status.Attempts)
		states := 1
		for i := range min(len(now.Status.Admissions), len(before.Status.Admissions)) {
			if was, is := &before.Status.Admissions[i], now.Status.Admissions[i].Running; was.Running != is {
				// The release before had not counted all pods of a job that it adopted, or that grew.
				was.Running, states = is, 2
			}
		}
		require.True(t, equality.Semantic.DeepEqual(before.Status.Admissions, now.Status.Admissions), "%s/%s: %v, was %v",
			ns, name, now.Status.Admissions, before.Status.Admissions)
		require.Equal(t, states, u.seen.versions(ns, name), "states of the unit %s/%s", ns, name)
		require.Empty(t, u.told(t, ns, name))
	}
}

// No unit is patched for what this release would write otherwise: a backlog may be of a hundred thousand. One is
// patched, as its namespace allows its number since the upgrade.
func (u *upgrade) waitingIsNotRewritten(t *testing.T) {
	require.Zero(t, *u.recorded(t, "full", "numbered").Spec.Priority)
	may := map[string]bool{"full/numbered": true}
	for _, o := range u.old.all("QueueUnit") {
		if key := o.GetNamespace() + "/" + o.GetName(); !may[key] {
			require.False(t, u.seen.rewritten(key), "%s was written, beside its status: %s", key, u.seen.text(key))
		}
	}
	require.Zero(t, *u.unit(t, "numbers", "boaster").Spec.Priority, "its namespace allows no more")
	require.EqualValues(t, 50, *u.unit(t, "full", "numbered").Spec.Priority, "its namespace allows 1000")
	for _, name := range []string{"old", "young", "numbered", "urgent"} {
		require.Equal(t, schedulingv1alpha1.PhaseEnqueued, u.unit(t, "full", name).Status.Phase, name)
		require.True(t, *u.job(t, "full", name).Spec.Suspend, name)
	}
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, u.unit(t, "block", "small").Status.Phase, "its head waits")
	for _, namespace := range []string{"mapped", "grown"} {
		require.Equal(t, schedulingv1alpha1.PhaseEnqueued, u.unit(t, namespace, "next").Status.Phase, namespace)
	}
	// Queues without any admission tell their pending units so.
	u.waitReason(t, "guests", "next", "QuotaNotInQueue")
	u.waitReason(t, "builtin", "huge", "QuotaNotNamed")
}

func (u *upgrade) overIsLeftAlone(t *testing.T) {
	over := u.units(t, schedulingv1alpha1.PhaseSucceed, schedulingv1alpha1.PhaseFailed)
	require.NotEmpty(t, over)
	for _, before := range over {
		require.Equal(t, 1, u.seen.versions(before.Namespace, before.Name), "states of %s/%s", before.Namespace, before.Name)
		require.Empty(t, u.told(t, before.Namespace, before.Name))
	}
}

// told is what the new controller said of a job.
func (u *upgrade) told(t *testing.T, namespace, job string) []string {
	t.Helper()
	list, err := u.kube.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job,
	})
	require.NoError(t, err)
	var said []string
	for _, e := range list.Items {
		if e.ReportingController == schedulingv1alpha1.CreatedByController {
			said = append(said, e.Reason+": "+e.Message)
		}
	}
	return said
}

// Queues and quotas that people or the release before made are the same objects with the same specs.
func (u *upgrade) queuesAreLeftAlone(t *testing.T) {
	for kind, resource := range map[string]schema.GroupVersionResource{
		"Queue": schedulingv1alpha1.QueueResource, "ElasticQuota": elasticQuotas,
	} {
		for _, before := range u.old.all(kind) {
			now, err := u.dyn.Resource(resource).Namespace(before.GetNamespace()).
				Get(t.Context(), before.GetName(), metav1.GetOptions{})
			require.NoError(t, err, "%s %s", kind, before.GetName())
			require.Equal(t, before.GetUID(), now.GetUID(), "%s %s", kind, before.GetName())
			require.Equal(t, before.Object["spec"], now.Object["spec"], "%s %s", kind, before.GetName())
			require.Equal(t, before.GetLabels(), now.GetLabels(), "%s %s", kind, before.GetName())
		}
	}
	queue := u.queue(t, everyField)
	require.Equal(t, u.old.find("Queue", queue.GetNamespace(), everyField).GetAnnotations(), queue.GetAnnotations())
}

// A job that was admitted while the controller was away is resumed with what its pods need.
func (u *upgrade) unresumedGoesOn(t *testing.T) {
	before := u.recorded(t, "late", "unresumed")
	require.Equal(t, schedulingv1alpha1.PhaseDequeued, before.Status.Phase)
	u.waitPhase(t, "late", "unresumed", schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, before.Status.Attempts, attempts(u.unit(t, "late", "unresumed")))
	require.NotEmpty(t, u.told(t, "late", "unresumed"), "what is told is seen here")
	for _, p := range u.podsOf(t, "late", "unresumed") {
		require.Equal(t, "late", p.Labels[schedulingv1alpha1.LabelQuotaName])
	}
	u.watch.clean(t, map[string]int{"late/unresumed": 1})
}

// A unit that holds quota without a pod on a node keeps it until a time-out of this release, counted from its
// admission. It also keeps it for five minutes after the start of a process, because nobody may have placed its pods
// before.
func (u *upgrade) heldGoesOn(t *testing.T) {
	for _, name := range []string{"by-hand", "unbound", "unbound-for-days"} {
		before, now := u.recorded(t, "held", name), u.unit(t, "held", name)
		require.Equal(t, schedulingv1alpha1.PhaseDequeued, now.Status.Phase, name)
		require.True(t, equality.Semantic.DeepEqual(before.Status.Admissions, now.Status.Admissions), name)
	}
	u.samePods(t, "held", "unbound")
	u.waitPhase(t, "held", "by-hand-waiting", schedulingv1alpha1.PhaseEnqueued)

	// A node appears that it fits on, and the author of the unit is done.
	_, err := u.kube.CoreV1().Nodes().Patch(t.Context(), controlplane.NodeName(0), types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+noNode+`":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	u.waitPhase(t, "held", "unbound", schedulingv1alpha1.PhaseSucceed)
	u.watch.clean(t, map[string]int{"held/unbound": 1})
	require.NoError(t, u.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace("held").
		Delete(t.Context(), "by-hand", metav1.DeleteOptions{}))
	u.waitPhase(t, "held", "by-hand-waiting", schedulingv1alpha1.PhaseDequeued)
}

// A job that had lost its admission runs again when it may, with the templates that the release before left.
func (u *upgrade) evictedComesBack(t *testing.T) {
	before := u.recorded(t, "over", "evicted")
	require.True(t, meta.IsStatusConditionTrue(before.Status.Conditions, schedulingv1alpha1.ConditionEvicted))
	u.setActive(t, "over", "evicted", true)
	u.comesBack(t, "over", "evicted", before.Status.Attempts)
}

// A running job that loses its admission now is suspended, and runs again. The record on the job of what the release
// before added to its template is understood.
func (u *upgrade) runningComesBack(t *testing.T) {
	before := u.recorded(t, "again", "again")
	u.setActive(t, "again", "again", false)
	require.Eventually(t, func() bool {
		return *u.job(t, "again", "again").Spec.Suspend && len(u.podsOf(t, "again", "again")) == 0
	}, soon, pace, "it is suspended and has no pods")
	u.setActive(t, "again", "again", true)
	u.comesBack(t, "again", "again", before.Status.Attempts)
}

// comesBack waits until a job runs that was admitted so often before, and ends it.
func (u *upgrade) comesBack(t *testing.T, namespace, name string, before int64) {
	t.Helper()
	u.waitPhase(t, namespace, name, schedulingv1alpha1.PhaseRunning)
	require.Equal(t, before+1, attempts(u.unit(t, namespace, name)))
	pods := u.podsOf(t, namespace, name)
	require.Len(t, pods, 1)
	require.Equal(t, namespace, pods[0].Labels[schedulingv1alpha1.LabelQuotaName])
	require.Equal(t, namespace+"/"+name, pods[0].Annotations[schedulingv1alpha1.AnnotationRelatedQueueUnit])
	u.end(t, namespace, name)
}

// end has the pods of a job succeed, and waits until it is done and its unit says so.
func (u *upgrade) end(t *testing.T, namespace, name string) {
	t.Helper()
	u.podsSucceed(t, namespace, name)
	u.waitPhase(t, namespace, name, schedulingv1alpha1.PhaseSucceed)
	require.True(t, jobDone(u.job(t, namespace, name)))
	require.Empty(t, u.unit(t, namespace, name).Status.Admissions, "a finished unit holds nothing (I7)")
}

// A unit that was parked is parked for the same reason, and goes on when that is gone.
func (u *upgrade) parkedGoesOn(t *testing.T) {
	u.recorded(t, "parked", "mismatch")
	u.waitReason(t, "parked", "mismatch", "QuotaMismatch")
	u.waitReason(t, "parked", "unknown", "UnknownQuota")
	u.quota(t, "parked", "unknown", 1, 1)
	u.waitPhase(t, "parked", "unknown", schedulingv1alpha1.PhaseSucceed)
}

// Each running job comes to its end, its unit follows, and those that waited for it run in the order in which they
// would have.
func (u *upgrade) othersFollow(t *testing.T) {
	pods := map[string]int{}
	for _, before := range u.units(t, schedulingv1alpha1.PhaseRunning) {
		if before.Namespace == "again" {
			continue // away for a while
		}
		u.samePods(t, before.Namespace, before.Name)
		pods[before.Namespace+"/"+before.Name] = len(u.podUIDs(before.Namespace, before.Name))
		u.end(t, before.Namespace, before.Name)
	}
	for namespace, order := range map[string][]string{
		"full":    {"urgent", "numbered", "old", "young"},
		"block":   {"head", "small"},
		"numbers": {"modest", "boaster"},
		"mapped":  {"next"},
		"grown":   {"next"},
		"guests":  nil,
	} {
		for _, name := range order {
			u.waitPhase(t, namespace, name, schedulingv1alpha1.PhaseSucceed)
			pods[namespace+"/"+name] = 1
		}
		u.seen.catchUp(t)
		require.Equal(t, order, u.seen.admittedIn(namespace), namespace)
	}
	u.watch.clean(t, pods)
}

// unitHistory is every state of every unit from the recorded one on, as the store has them.
type unitHistory struct {
	store *observer.Observer

	mu     sync.Mutex
	states map[string][]*schedulingv1alpha1.QueueUnit
	// charges have namespaces for quotas, each with the cores that it has (I1).
	charges *checker.Charges
	// admitted are those that were, by namespace and in their order.
	admitted map[string][]string
	// jobs in their last state, and those that were suspended while they were not.
	jobs      map[string]*batchv1.Job
	suspended []string
}

func (u *upgrade) followUnits(t *testing.T, cores map[string]int) *unitHistory {
	t.Helper()
	h := &unitHistory{
		states: map[string][]*schedulingv1alpha1.QueueUnit{}, charges: checker.NewCharges(true, nil),
		admitted: map[string][]string{}, jobs: map[string]*batchv1.Job{},
	}
	for namespace, cores := range cores {
		h.charges.Apply(checker.Event{Object: checker.Quota{
			Name: namespace, Max: checker.Resources{"cpu": int64(cores) * 1000},
		}})
	}
	var err error
	h.store, err = observer.New(u.URL(controlplane.Etcd), h.see)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go h.store.Run(ctx)
	return h
}

func (h *unitHistory) see(change observer.Change) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := change.Object.(type) {
	case *batchv1.Job:
		h.seeJob(o)
	case *schedulingv1alpha1.QueueUnit:
		h.seeUnit(o, change.Deleted)
	}
	return nil
}

func (h *unitHistory) seeJob(job *batchv1.Job) {
	key := job.Namespace + "/" + job.Name
	before := h.jobs[key]
	if before != nil && before.Spec.Suspend != nil && !*before.Spec.Suspend && *job.Spec.Suspend {
		h.suspended = append(h.suspended, key)
	}
	h.jobs[key] = job
}

func (h *unitHistory) seeUnit(unit *schedulingv1alpha1.QueueUnit, deleted bool) {
	ns, key := unit.Namespace, unit.Namespace+"/"+unit.Name
	charged := checker.UnitOf(unit)
	charged.Quota = ns
	h.charges.Apply(checker.Event{Object: charged, Deleted: deleted})
	if deleted {
		return
	}
	if states := h.states[key]; len(states) > 0 && states[len(states)-1].Status.Attempts < unit.Status.Attempts {
		h.admitted[ns] = append(h.admitted[ns], unit.Name)
	}
	h.states[key] = append(h.states[key], unit)
}

// catchUp waits until the history has all that the store has.
func (h *unitHistory) catchUp(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, h.store.CaughtUp(ctx))
}

// versions counts the states that a unit was in, the recorded one included.
func (h *unitHistory) versions(namespace, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.states[namespace+"/"+name])
}

// rewritten says whether anything of a unit except its status was ever written.
func (h *unitHistory) rewritten(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := h.states[key]
	for i := 1; i < len(states); i++ {
		a, b := states[i-1], states[i]
		if !equality.Semantic.DeepEqual(a.Spec, b.Spec) || !equality.Semantic.DeepEqual(a.Labels, b.Labels) ||
			!equality.Semantic.DeepEqual(a.Annotations, b.Annotations) ||
			!equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) {
			return true
		}
	}
	return false
}

// text has the first and the last spec of a unit.
func (h *unitHistory) text(key string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := h.states[key]
	if len(states) == 0 {
		return "never seen"
	}
	first, _ := yaml.Marshal(states[0].Spec)
	last, _ := yaml.Marshal(states[len(states)-1].Spec)
	return fmt.Sprintf("%s\nbecame\n%s", first, last)
}

// admittedIn are the units of a namespace that were admitted since the recording, in their order.
func (h *unitHistory) admittedIn(namespace string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.admitted[namespace])
}

// clean checks that no namespace ever held more than its quota, and that only the given jobs were suspended.
func (h *unitHistory) clean(t *testing.T, suspended ...string) {
	t.Helper()
	h.catchUp(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Empty(t, h.charges.Violations())
	require.ElementsMatch(t, suspended, h.suspended)
}
