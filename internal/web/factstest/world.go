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

// Package factstest has a small firm as the page sees it, for tests: three persons, and any number of jobs.
package factstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
)

// Script is the name of a job that nobody should have to read.
const Script = `<script>document.title='taken'</script>`

// Now is the time of the world.
var Now = time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)

// World is what both APIs know.
type World struct {
	lock     sync.Mutex
	quotas   []visibility.Quota
	queues   []visibility.Queue
	waiting  []*v1alpha1.QueueUnit
	admitted []*v1alpha1.QueueUnit
	records  []visibility.Record
	findings []doctor.Finding
	down     error
}

// Person reads the world. An empty namespace is an operator, who may read and change all. Others read their namespace,
// and nobody's is "none".
type Person struct {
	*World
	Of string
	// Also are other namespaces that a lead may read.
	Also []string
}

// Nobody may read nothing.
const Nobody = "none"

var _ facts.Source = &Person{}

// Empty is a cluster without a quota, queue or job.
func Empty() *World { return &World{} }

func resources(cpu, gpu string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	if gpu != "" {
		list["nvidia.com/gpu"] = resource.MustParse(gpu)
	}
	return list
}

func quota(name, parent string, minimum, limit, most corev1.ResourceList) visibility.Quota {
	return visibility.Quota{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: visibility.QuotaStatus{
		Exists: true, Parent: parent, Min: minimum, Limit: limit, Max: most,
	}}
}

// Firm has two departments that share 64 cores and 16 GPUs, and waiting jobs in the queue "work".
func Firm(waiting int) *World {
	w := &World{}
	w.quotas = []visibility.Quota{
		quota("koordinator-root-quota", "", nil, resources("60", "16"), resources("64", "16")),
		quota("firm", "koordinator-root-quota", resources("60", "16"), resources("60", "16"), resources("60", "16")),
		quota("red", "firm", resources("20", "4"), resources("36", "12"), resources("48", "16")),
		quota("blue", "firm", resources("24", "4"), resources("24", "4"), resources("48", "16")),
	}
	w.quotas[2].Status.Holding, w.quotas[2].Status.Waiting = 3, count(waiting)
	for i, used := range []corev1.ResourceList{
		resources("30", "12"), resources("30", "12"), resources("28", "12"), resources("2", "0"),
	} {
		w.quotas[i].Status.Used = used
		if i < 3 {
			w.quotas[i].Status.Reserved = resources("8", "0")
		}
	}
	w.quotas[2].Status.Pending = resources(fmt.Sprint(4*waiting), fmt.Sprint(waiting))
	w.quotas[3].Status.Holding = 1
	w.queues = []visibility.Queue{
		{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Status: visibility.QueueStatus{
			Exists: true, Policy: "Priority", Priority: 10, Pending: count(waiting), Admitted: 4,
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "night"}, Status: visibility.QueueStatus{
			Exists: true, Policy: "FIFO", Held: true,
		}},
	}
	for i, name := range []string{"train-large", "eval", "sweep"} {
		since := Now.Add(-time.Duration(i+1) * 50 * time.Minute)
		w.admitted = append(w.admitted, unit("red", name, v1alpha1.PhaseRunning, since, "12", "4"))
	}
	w.admitted = append(w.admitted, unit("blue", "report", v1alpha1.PhaseRunning, Now.Add(-5*time.Hour), "2", ""))
	for i := range waiting {
		name, namespace := fmt.Sprintf("job-%06d", i), "red"
		switch i {
		case 1:
			namespace = "blue"
		case 2:
			name = Script
		}
		since := Now.Add(-time.Duration(i+1) * time.Minute)
		w.waiting = append(w.waiting, unit(namespace, name, v1alpha1.PhaseEnqueued, since, "4", "1"))
	}
	w.record()
	w.findings = []doctor.Finding{
		{Severity: doctor.Error, Code: "NoLeader", Fix: "kubectl -n koordinator-system get pods",
			Message: "No replica of koord-scheduler leads: lease koord-scheduler was renewed 3m0s ago."},
		{Severity: doctor.Warning, Code: "QueueHeld", Fix: "kubectl jobqueue resume night",
			Message: "Queue night is on hold."},
	}
	return w
}

// count is a number of objects, of which a test has few.
func count(n int) int32 { return int32(min(n, 1<<30)) } //nolint:gosec // it is bounded

func unit(namespace, job string, phase v1alpha1.QueueUnitPhase, since time.Time, cpu, gpu string) *v1alpha1.QueueUnit {
	held, asked := "", "cpu: "+cpu
	if gpu != "" {
		asked += ", nvidia.com/gpu: " + gpu
	}
	u := &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: unitName(job), UID: types.UID(namespace + "-" + job),
			CreationTimestamp: metav1.NewTime(since),
		},
		Spec: v1alpha1.QueueUnitSpec{Queue: "work", ConsumerRef: &corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(namespace + "/" + job),
		}},
	}
	u.Status.Phase = phase
	if phase == v1alpha1.PhaseRunning {
		held = asked
		admitted := metav1.NewTime(since.Add(3 * time.Minute))
		u.Status.LastAllocateTime = &admitted
		u.Status.Attempts = 1
		u.Status.Admissions = []v1alpha1.Admission{{Name: "main", Resources: resources(cpu, gpu)}}
	} else {
		u.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionFalse,
			Reason: "QuotaExceeded", Message: "quota \"red\": nvidia.com/gpu: request " + gpu + ", free 0",
			LastTransitionTime: metav1.NewTime(since)}}
	}
	u.Status.Effective = &v1alpha1.Effective{Queue: "work", Quota: namespace, Requested: asked, Held: held}
	return u
}

// unitName of a job. That of the script has what a name may have.
func unitName(job string) string {
	if job == Script {
		return "job-script"
	}
	return job
}

// record has the transitions of the admitted units, and of one that was preempted.
func (w *World) record() {
	add := func(u *v1alpha1.QueueUnit, event visibility.RecordEvent, at time.Time, edit func(*visibility.Record)) {
		r := visibility.Record{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace}, Time: metav1.NewMicroTime(at), Event: event, Unit: u.Name,
			UID: string(u.UID), Kind: "Job.v1.batch", Job: u.Spec.ConsumerRef.Name, Queue: "work", Quota: u.Namespace,
			Created: u.CreationTimestamp,
		}
		if edit != nil {
			edit(&r)
		}
		w.records = append(w.records, r)
	}
	for i, u := range w.admitted {
		created := u.CreationTimestamp.Time
		add(u, visibility.RecordEnqueued, created, nil)
		add(u, visibility.RecordAdmitted, created.Add(3*time.Minute), func(r *visibility.Record) {
			r.Held, r.Attempt = u.Status.Admissions[0].Resources, 1
			r.Waited = &metav1.Duration{Duration: time.Duration(i+1) * 3 * time.Minute}
		})
		add(u, visibility.RecordRunning, created.Add(4*time.Minute), nil)
	}
	lost := unit("blue", "lost", v1alpha1.PhaseSucceed, Now.Add(-4*time.Hour), "8", "2")
	held := func(r *visibility.Record) { r.Held, r.Attempt = resources("8", "2"), 1 }
	add(lost, visibility.RecordAdmitted, Now.Add(-4*time.Hour), func(r *visibility.Record) {
		held(r)
		r.Waited = &metav1.Duration{Duration: 20 * time.Second}
	})
	add(lost, visibility.RecordEvicted, Now.Add(-2*time.Hour), func(r *visibility.Record) {
		held(r)
		r.Reason, r.Ran = "Reclaimed", &metav1.Duration{Duration: 2 * time.Hour}
	})
	slices.SortStableFunc(w.records, func(a, b visibility.Record) int { return a.Time.Compare(b.Time.Time) })
}

// Stop makes every question fail, until nil.
func (w *World) Stop(err error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.down = err
}

// Finish removes the first waiting unit of the line.
func (w *World) Finish() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.waiting = w.waiting[1:]
	w.queues[0].Status.Pending--
	w.quotas[2].Status.Waiting--
}

// may says whether a person may read a namespace, and that both APIs answer.
func (p *Person) may(namespace, resource string) error {
	switch {
	case p.down != nil:
		return p.down
	case p.sees(namespace):
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: visibility.GroupName, Resource: resource}, "",
		fmt.Errorf("the user of namespace %s may not read %s of namespace %q", p.Of, resource, namespace))
}

func (p *Person) sees(namespace string) bool {
	return p.Of == "" || namespace == p.Of || slices.Contains(p.Also, namespace)
}

// Namespace implements facts.Source.
func (p *Person) Namespace() string {
	if p.Of == "" {
		return "default"
	}
	return p.Of
}

// ask with the lock held.
func ask[T any](p *Person, namespace, resource string, answer func() T) (T, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	var none T
	if p.Of == Nobody {
		namespace = "?"
	}
	if err := p.may(namespace, resource); err != nil {
		return none, err
	}
	return answer(), nil
}

// Quotas implements facts.Source.
func (p *Person) Quotas(_ context.Context, namespace string) ([]visibility.Quota, error) {
	return ask(p, namespace, "quotas", func() (all []visibility.Quota) {
		for _, q := range p.quotas {
			if namespace == "" || q.Name == namespace {
				all = append(all, q)
			}
		}
		return all
	})
}

// Queues implements facts.Source.
func (p *Person) Queues(_ context.Context, namespace string) ([]visibility.Queue, error) {
	return ask(p, namespace, "queues", func() []visibility.Queue {
		if namespace == "" {
			return slices.Clone(p.queues)
		}
		return slices.Clone(p.queues[:min(len(p.queues), 1)])
	})
}

// Line implements facts.Source. Of units of other namespaces a reader of one learns the position and the request.
func (p *Person) Line(
	_ context.Context, namespace, queue string, from, limit int,
) (*visibility.WaitingUnitList, error) {
	if p.Of == "" {
		namespace = ""
	}
	list, err := ask(p, namespace, "waitingunits", func() *visibility.WaitingUnitList {
		if !slices.ContainsFunc(p.queues, func(q visibility.Queue) bool { return q.Name == queue }) {
			return nil
		}
		list := &visibility.WaitingUnitList{}
		if queue != "work" {
			return list
		}
		for i := from; i < min(from+limit, len(p.waiting)); i++ {
			list.Items = append(list.Items, p.place(i))
		}
		if rest := int64(len(p.waiting) - from - len(list.Items)); rest > 0 {
			list.RemainingItemCount = &rest
		}
		return list
	})
	if err == nil && list == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: visibility.GroupName, Resource: "queues"}, queue)
	}
	return list, err
}

func (p *Person) place(i int) visibility.WaitingUnit {
	u := p.waiting[i]
	w := visibility.WaitingUnit{Position: count(i + 1), Requested: resources("4", "1")}
	if p.sees(u.Namespace) {
		created := u.CreationTimestamp
		w.Kind, w.Job = "Job.v1.batch", u.Spec.ConsumerRef.Name
		w.Namespace, w.Name, w.Quota, w.QueuedAt, w.Reason = u.Namespace, u.Name, u.Namespace, &created, "QuotaExceeded"
		w.Message = u.Status.Conditions[0].Message
	}
	return w
}

// Jobs implements facts.Source.
func (p *Person) Jobs(_ context.Context, q *unitlist.Query, limit int) (rows []screen.Row, more bool, err error) {
	all, err := ask(p, cmp.Or(q.Namespace, p.Of), "units", func() (rows []screen.Row) {
		for _, u := range slices.Concat(p.admitted, p.waiting) {
			if p.sees(u.Namespace) && (q.Namespace == "" || q.Namespace == u.Namespace) &&
				(q.Queue == "" || q.Queue == u.Spec.Queue) && slices.Contains(q.States, unitstate.State(screen.State(u))) {
				rows = append(rows, screen.RowOfObject(u))
			}
			if len(rows) > limit {
				break
			}
		}
		return rows
	})
	return all[:min(limit, len(all))], len(all) > limit, err
}

// Admitted implements facts.Source.
func (p *Person) Admitted(_ context.Context, namespace string, limit int) ([]v1alpha1.QueueUnit, error) {
	units, err := ask(p, namespace, "queueunits", func() []v1alpha1.QueueUnit { return among(p.admitted, namespace) })
	return units[:min(limit, len(units))], err
}

func among(units []*v1alpha1.QueueUnit, namespace string) (all []v1alpha1.QueueUnit) {
	for _, u := range units {
		if namespace == "" || u.Namespace == namespace {
			all = append(all, *u.DeepCopy())
		}
	}
	return all
}

// Forecasts implements facts.Source. The first three of the line have one.
func (p *Person) Forecasts(context.Context, string) map[string]*visibility.Forecast {
	found := map[string]*visibility.Forecast{}
	for _, u := range p.waiting[:min(len(p.waiting), 3)] {
		found[u.Namespace+"/"+u.Name] = &visibility.Forecast{Status: forecast()}
	}
	return found
}

func forecast() visibility.ForecastStatus {
	about, latest := metav1.NewTime(Now.Add(40*time.Minute)), metav1.NewTime(Now.Add(2*time.Hour))
	return visibility.ForecastStatus{About: &about, Latest: &latest}
}

// Records implements facts.Source.
func (p *Person) Records(_ context.Context, q *answers.RecordQuery) (*answers.Records, error) {
	return ask(p, q.Namespace, "records", func() *answers.Records {
		found := &answers.Records{CompleteSince: metav1.NewTime(Now.Add(-12 * time.Hour))}
		for i := range p.records {
			r := &p.records[i]
			if (q.Namespace == "" || r.Namespace == q.Namespace) && (q.Job == "" || r.Job == q.Job) &&
				(q.Quota == "" || r.Quota == q.Quota) && !r.Time.Time.Before(q.Since) {
				found.Items = append(found.Items, *r)
			}
		}
		return found
	})
}

// Preemptions implements facts.Source.
func (p *Person) Preemptions(_ context.Context, q *answers.PreemptionQuery, dry bool) (*answers.Preemptions, error) {
	return ask(p, q.Namespace, "queueunits", func() *answers.Preemptions {
		found := &answers.Preemptions{DryRun: dry, NamesHidden: q.Namespace != ""}
		if len(p.admitted) == 0 {
			return found
		}
		subject := func(namespace, name string) answers.Subject {
			return answers.Subject{Namespace: namespace, Unit: name, Job: "job/" + name, Queue: "work", Quota: namespace}
		}
		if dry {
			found.Taking = []answers.Taking{{
				Subject: subject("blue", "report-2"), Asks: "cpu: 8, nvidia.com/gpu: 2",
				Victims: []answers.Victim{{Subject: subject("red", "sweep"), State: answers.VictimHolds}}, Others: 1,
			}}
			return found
		}
		taker := subject("red", "train-large")
		found.Taken = []answers.Taken{{
			Victim: answers.Victim{Subject: subject("blue", "lost"), State: answers.VictimDeleted},
			Time:   metav1.NewTime(Now.Add(-2 * time.Hour)), Reason: "Reclaimed", ByQuota: "red", Taker: &taker, Evictions: 1,
		}}
		return found
	})
}

// Findings implements facts.Source.
func (p *Person) Findings(context.Context) ([]doctor.Finding, error) {
	return ask(p, p.Of, "deployments", func() []doctor.Finding { return slices.Clone(p.findings) })
}

// Pods implements facts.Source.
func (p *Person) Pods(_ context.Context, u *v1alpha1.QueueUnit) ([]corev1.Pod, bool, error) {
	pods, err := ask(p, u.Namespace, "pods", func() (pods []corev1.Pod) {
		if u.Status.Phase != v1alpha1.PhaseRunning {
			return nil
		}
		for i := range 3 {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: u.Namespace, Name: fmt.Sprintf("%s-%d", u.Name, i), CreationTimestamp: u.CreationTimestamp,
			}}
			pod.Spec.NodeName, pod.Status.Phase = fmt.Sprintf("node-%d", i), corev1.PodRunning
			pods = append(pods, pod)
		}
		return pods
	})
	return pods, false, err
}

// Events implements facts.Source.
func (p *Person) Events(_ context.Context, u *v1alpha1.QueueUnit) ([]corev1.Event, error) {
	return ask(p, u.Namespace, "events", func() []corev1.Event {
		return []corev1.Event{{
			InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: u.Spec.ConsumerRef.Name}, Reason: "Queued", Count: 1,
			Message: "the job waits in queue \"work\"", LastTimestamp: u.CreationTimestamp,
		}}
	})
}

// YAML implements facts.Source.
func (p *Person) YAML(_ context.Context, u *v1alpha1.QueueUnit) (string, error) {
	return ask(p, u.Namespace, "queueunits", func() string {
		text, err := yaml.Marshal(u)
		return strings.TrimSpace(fmt.Sprint(string(text), err))
	})
}

// Rights implements facts.Source.
func (p *Person) Rights(_ context.Context, u *v1alpha1.QueueUnit) (facts.Rights, error) {
	return facts.Rights{Owner: p.Of == "" || p.Of == u.Namespace, Operator: p.Of == ""}, nil
}

// Run implements facts.Source. It changes nothing.
func (p *Person) Run(_ context.Context, args ...string) (string, error) {
	if p.Of == Nobody {
		return "", fmt.Errorf("forbidden")
	}
	return "done: " + strings.Join(args, " "), nil
}
