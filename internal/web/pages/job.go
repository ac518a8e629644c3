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

package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/charts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Parts of a job's page, by the parameter "show".
const (
	showWhy    = ""
	showPods   = "pods"
	showEvents = "events"
	showYAML   = "yaml"
)

// mostTransitions of one job on its timeline.
const mostTransitions = 200

type jobBody struct {
	Namespace, Unit, Job, State, Queue, Link, Show string
	Why                                            *whyBody
	Timeline                                       *charts.Timeline
	Stretches                                      []stretchRow
	NoRecord                                       string
	Actions                                        []action
	Pods                                           []podRow
	PodStates                                      []charts.Amount
	MorePods                                       bool
	Events                                         []corev1.Event
	YAML                                           string
}

type stretchRow struct {
	Class, Cause string
	From         time.Time
	Took         string
}

type podRow struct{ Name, State, Node, Reason, Age string }

// action is a button, and the command that it equals.
type action struct {
	Name, Verb, Command, Help string
	// Input is the name of the field whose value the command takes; Value is the present one.
	Input, Label, Value string
	Operator            bool
}

func jobPage(q *question) (*view, error) {
	namespace, name := q.PathValue("namespace"), q.PathValue("name")
	story, err := q.Story(q.Context, namespace, name)
	if err != nil {
		return nil, err
	}
	u := story.Unit
	body := &jobBody{
		Namespace: namespace, Unit: name, Job: answers.JobOf(u), State: screen.State(u), Queue: queueOf(u),
		Link: jobLink(namespace, name), Show: q.query.Get("show"),
	}
	switch body.Show {
	case showPods:
		err = body.pods(q, u)
	case showEvents:
		body.Events, err = q.Events(q.Context, u)
		slices.SortFunc(body.Events, func(a, b corev1.Event) int { return lastSeen(&b).Compare(lastSeen(&a)) })
	case showYAML:
		body.YAML, err = q.YAML(q.Context, u)
	default:
		body.Show = showWhy
		body.Why = whyOf(q.now, story)
		body.timeline(q, story)
		body.actions(q, u)
	}
	if err != nil {
		return nil, err
	}
	return &view{Title: body.Job, Nav: "/queues", Template: "job", Body: body}, nil
}

func queueOf(u *v1alpha1.QueueUnit) string {
	if e := u.Status.Effective; e != nil {
		return cmp.Or(e.Queue, u.Spec.Queue)
	}
	return u.Spec.Queue
}

func lastSeen(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
}

// timeline reads the record. Without one it has what the unit says of itself.
func (b *jobBody) timeline(q *question, story *screen.Story) {
	u := story.Unit
	query := &answers.RecordQuery{Namespace: u.Namespace, Limit: mostTransitions}
	if ref := u.Spec.ConsumerRef; ref != nil {
		query.Job = ref.Name
	}
	var records []visibility.Record
	found, err := q.Records(q.Context, query)
	if err != nil {
		b.NoRecord = err.Error()
	} else {
		for i := range found.Items {
			if found.Items[i].UID == string(u.UID) {
				records = append(records, found.Items[i])
			}
		}
	}
	stretches := stretchesOf(records, story, q.now)
	b.Timeline = charts.NewTimeline("Timeline of "+b.Job, stretches)
	for i := range stretches {
		s := &stretches[i]
		b.Stretches = append(b.Stretches, stretchRow{s.Class, s.Cause, s.From, age(s.To, s.From)})
	}
}

// stretchesOf a unit by cause, from its creation to now or to its end.
func stretchesOf(records []visibility.Record, story *screen.Story, now time.Time) (all []charts.Stretch) {
	u := story.Unit
	at := charts.Stretch{Class: "waiting", Cause: "Waits for quota", From: u.CreationTimestamp.Time}
	next := func(time time.Time, class, cause string) {
		if at.To = time; at.To.After(at.From) && at.Class != "" {
			all = append(all, at)
		}
		at = charts.Stretch{Class: class, Cause: cause, From: time}
	}
	if len(records) == 0 {
		records = conditionsOf(u)
	}
	for i := range records {
		r := &records[i]
		switch r.Event {
		case visibility.RecordReserved:
			next(r.Time.Time, "checked", "Admission checks")
		case visibility.RecordAdmitted:
			next(r.Time.Time, "placed", "Pods start")
		case visibility.RecordRunning:
			next(r.Time.Time, "used", "Runs")
		case visibility.RecordEvicted:
			next(r.Time.Time, "waiting", "Waits after its eviction: "+r.Reason+takenBy(story.Taken, r.Time.Time))
		case visibility.RecordDeactivated:
			next(r.Time.Time, "held", strings.TrimSuffix("On hold: "+r.Reason, ": "))
		case visibility.RecordActivated:
			next(r.Time.Time, "waiting", "Waits for quota")
		case visibility.RecordSucceeded, visibility.RecordFailed, visibility.RecordDeleted:
			next(r.Time.Time, "", "")
		case visibility.RecordEnqueued, visibility.RecordChanged, visibility.RecordResized:
		}
	}
	if at.Class == "waiting" {
		at.Cause = presentCause(story, at.Cause)
	}
	next(maxTime(now, at.From), "", "")
	return all
}

// takenBy says to whom the quota went, if that is the preemption since which the unit waits.
func takenBy(t *answers.Taken, at time.Time) string {
	const apart = 5 * time.Second // between the object and the record
	switch {
	case t == nil || t.Time.Sub(at).Abs() > apart:
		return ""
	case t.Taker != nil:
		return " by " + t.Taker.Namespace + "/" + t.Taker.Job
	case t.ByQuota != "":
		return " by quota " + t.ByQuota
	}
	return ""
}

// presentCause has the reason of this moment, and how many are ahead.
func presentCause(story *screen.Story, cause string) string {
	reason, _ := story.Reason()
	if reason != "" {
		cause += ": " + reason
	}
	if l := story.Live; l != nil && l.Status.Position > 1 {
		cause += ", " + plural(int(l.Status.Position)-1, "job") + " ahead"
		if l.Status.First != "" {
			cause += ", first " + l.Status.First
		}
	}
	return cause
}

// conditionsOf a unit as records, for readers without the aggregated API: the last admission, run and eviction.
func conditionsOf(u *v1alpha1.QueueUnit) (records []visibility.Record) {
	events := map[string]visibility.RecordEvent{
		v1alpha1.ConditionQuotaReserved: visibility.RecordReserved, v1alpha1.ConditionAdmitted: visibility.RecordAdmitted,
		v1alpha1.ConditionEvicted: visibility.RecordEvicted, v1alpha1.ConditionFinished: visibility.RecordSucceeded,
	}
	for _, c := range u.Status.Conditions {
		if event, is := events[c.Type]; is && c.Status == "True" {
			r := visibility.Record{Event: event, Reason: c.Reason}
			r.Time.Time = c.LastTransitionTime.Time
			records = append(records, r)
		}
	}
	slices.SortStableFunc(records, func(a, b visibility.Record) int { return a.Time.Compare(b.Time.Time) })
	return records
}

// actions that the caller may do. Without an answer about rights there are none.
func (b *jobBody) actions(q *question, u *v1alpha1.QueueUnit) {
	if unit.Phase(u.Status.Phase).Terminal() {
		return
	}
	rights, err := q.Rights(q.Context, u)
	if err != nil {
		return
	}
	for _, a := range actionsOf(u) {
		if a.Operator && rights.Operator || !a.Operator && rights.Owner && u.Spec.ConsumerRef != nil {
			b.Actions = append(b.Actions, a)
		}
	}
}

// actionsOf a unit. An owner holds the job, an operator the unit.
func actionsOf(u *v1alpha1.QueueUnit) []action {
	command := func(verb, rest string) string {
		return "kubectl jobqueue " + verb + " " + answers.JobOf(u) + rest + " -n " + u.Namespace
	}
	byOwner := u.Annotations[v1alpha1.AnnotationParkedReason] != ""
	all := []action{
		{Name: "Hold", Verb: "hold", Command: command("hold", ""),
			Help: "The job keeps its position and holds no quota. A job that runs is suspended."},
		{Name: "Release", Verb: "release", Command: command("release", ""), Help: "The job waits for quota again."},
		{Name: "Hold as operator", Verb: "hold-unit", Command: command("hold", " --unit"), Operator: true,
			Help: "As hold, and the owner cannot undo it."},
		{Name: "Release as operator", Verb: "release-unit", Command: command("release", " --unit"), Operator: true,
			Help: "Undoes a hold of an operator, or a deactivation."},
		{Name: "Set priority", Verb: "priority", Command: command("priority", " --to NUMBER"), Operator: true,
			Input: "to", Label: "Priority", Value: fmt.Sprint(priorityOf(u)), Help: "A greater number is admitted first."},
		{Name: "Move", Verb: "move", Command: command("move", " --queue QUEUE"), Operator: true,
			Input: "queue", Label: "Queue", Value: queueOf(u), Help: "The job waits in another queue, and stays in its quota."},
	}
	return slices.DeleteFunc(all, func(a action) bool {
		switch a.Verb {
		case "hold", "hold-unit":
			return u.Inactive()
		case "release":
			return !u.Inactive() || !byOwner
		case "release-unit":
			return !u.Inactive() || byOwner
		}
		return false
	})
}

func priorityOf(u *v1alpha1.QueueUnit) int32 {
	if u.Spec.Priority == nil {
		return 0
	}
	return *u.Spec.Priority
}

// said is what a command said, or its error.
type said struct {
	Command, Text string
	Failed        bool
}

// maxForm bounds the body of a request, in bytes.
const maxForm = 4096

// act runs the command that a button equals. The command has the rights of the caller.
func (s *Site) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	source, err := s.source(r)
	if err != nil {
		s.page(w, r, func(*question) (*view, error) { return nil, err }, nil)
		return
	}
	done := &said{}
	story, err := source.Story(r.Context(), r.PathValue("namespace"), r.PathValue("name"))
	if err == nil {
		var args []string
		if args, err = argumentsOf(r.PostFormValue, story.Unit); err == nil {
			done.Command = "kubectl jobqueue " + strings.Join(args, " ")
			done.Text, err = source.Run(r.Context(), args...)
		}
	}
	if err != nil {
		done.Failed, done.Text = true, err.Error()
	}
	s.page(w, r, jobPage, done)
}

// argumentsOf a command. The job and its namespace are those of the object; a value of the form is one argument.
func argumentsOf(form func(string) string, u *v1alpha1.QueueUnit) ([]string, error) {
	job := answers.JobOf(u)
	if u.Spec.ConsumerRef == nil {
		job = u.Name
	}
	at := []string{job, "--namespace=" + u.Namespace}
	switch verb := form("verb"); verb {
	case "hold", "release":
		return append([]string{verb}, at...), nil
	case "hold-unit", "release-unit":
		return append([]string{strings.TrimSuffix(verb, "-unit"), "--unit"}, at...), nil
	case "priority":
		to, err := strconv.ParseInt(strings.TrimSpace(form("to")), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("priority: want a whole number, have %q", form("to"))
		}
		return append([]string{verb, "--to=" + strconv.FormatInt(to, 10)}, at...), nil
	case "move":
		queue := strings.TrimSpace(form("queue"))
		if queue == "" {
			return nil, fmt.Errorf("move: want the name of a queue")
		}
		return append([]string{verb, "--queue=" + queue}, at...), nil
	}
	return nil, fmt.Errorf("no button has this name")
}

func (b *jobBody) pods(q *question, u *v1alpha1.QueueUnit) error {
	pods, more, err := q.Pods(q.Context, u)
	if err != nil {
		return err
	}
	b.MorePods = more
	counts := map[string]int{}
	for i := range pods {
		p := &pods[i]
		row := podRow{p.Name, podState(p), p.Spec.NodeName, "", age(q.now, p.CreationTimestamp.Time)}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				row.Reason = c.Message
			}
		}
		counts[row.State]++
		b.Pods = append(b.Pods, row)
	}
	slices.SortFunc(b.Pods, func(a, b podRow) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Name, b.Name))
	})
	for _, state := range []string{"Running", "Gated", "Pending", "Succeeded", "Failed", "Deleting"} {
		if n := counts[state]; n > 0 {
			b.PodStates = append(b.PodStates, charts.Amount{Name: state, Number: float64(n), Text: thousands(n)})
		}
	}
	return nil
}

func podState(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "Deleting"
	case len(p.Spec.SchedulingGates) > 0:
		return "Gated"
	}
	return string(p.Status.Phase)
}
