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
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/charts"
)

const (
	// mostQuotas on one page. A subtree has a page of its own.
	mostQuotas = 100
	// recent is the period of the small charts, in so many steps.
	recent      = 6 * time.Hour
	recentSteps = 36
	// mostRecords of a chart, the newest.
	mostRecords = 5000
)

// quotaRow is a quota of the tree.
type quotaRow struct {
	*visibility.Quota
	Depth     int
	Resources []resourceRow
	// Holding and Waiting are numbers of units, of this quota and of those below.
	Holding, Waiting int
}

// resourceRow is one resource of a quota.
type resourceRow struct {
	Name                                    string
	Bar                                     *charts.Bar
	Min, Runtime, Max, Used, Reserved, Free string
	// Pending is what waiting units ask for, here and below.
	Pending string
	// Loan says that the quota borrows or lends.
	Loan string
	// Recent is what was held in the last hours; nil without a record.
	Recent *charts.Steps
	Steps  []stepRow
}

type stepRow struct{ At, Held string }

type quotasBody struct {
	Rows      []quotaRow
	Left      int
	Resource  string
	Resources []string
	// Cordoned is what no pod can use.
	Cordoned []string
	NoRecord string
}

// scoped asks for all namespaces or, without the right to that, for the one of the caller. The parameter "namespace" of
// the URL asks for one.
func scoped[T any](q *question, ask func(namespace string) (T, error)) (answer T, note string, err error) {
	chosen := q.query.Get("namespace")
	answer, err = ask(chosen)
	switch {
	case chosen != "":
		return answer, "Namespace " + chosen + " only.", err
	case apierrors.IsForbidden(err) && q.Namespace() != "":
		answer, err = ask(q.Namespace())
		return answer, ofOneNamespace(q), err
	}
	return answer, "", err
}

func ofOneNamespace(q *question) string {
	return "You may read namespace " + q.Namespace() + ". The page shows what its jobs use."
}

func quotasPage(q *question) (*view, error) {
	quotas, note, err := scoped(q, func(namespace string) ([]visibility.Quota, error) {
		return q.Quotas(q.Context, namespace)
	})
	if err != nil {
		return nil, err
	}
	body := quotasBody{Resource: q.query.Get("resource"), Resources: resourcesOf(quotas), Cordoned: cordoned(quotas)}
	recent := recentOf(q, quotas)
	body.NoRecord = recent.missing
	tree := newTree(quotas)
	for _, at := range tree.order("") {
		if len(body.Rows) == mostQuotas {
			body.Left++
			continue
		}
		body.Rows = append(body.Rows, tree.row(at, body.Resource, recent))
	}
	return &view{Title: "Quotas", Nav: "/quotas", Template: "quotas", Body: &body, Note: note}, nil
}

type quotaBody struct {
	quotasBody
	Of      quotaRow
	Parents []string
	Queues  string
}

func quotaPage(q *question) (*view, error) {
	name := q.PathValue("name")
	quotas, note, err := scoped(q, func(namespace string) ([]visibility.Quota, error) {
		return q.Quotas(q.Context, namespace)
	})
	if err != nil {
		return nil, err
	}
	tree := newTree(quotas)
	of := tree.byName[name]
	if of == nil {
		return nil, apierrors.NewNotFound(visibility.SchemeGroupVersion.WithResource("quotas").GroupResource(), name)
	}
	body := quotaBody{quotasBody: quotasBody{Resource: q.query.Get("resource"), Resources: resourcesOf(quotas)}}
	recent := recentOf(q, quotas)
	body.NoRecord = recent.missing
	body.Of = tree.row(position{of, 0}, body.Resource, recent)
	for parent := tree.byName[of.Status.Parent]; parent != nil && len(body.Parents) < len(quotas); {
		body.Parents = append(body.Parents, parent.Name)
		parent = tree.byName[parent.Status.Parent]
	}
	slices.Reverse(body.Parents)
	for _, at := range tree.order(name) {
		if len(body.Rows) == mostQuotas {
			body.Left++
			continue
		}
		body.Rows = append(body.Rows, tree.row(at, body.Resource, recent))
	}
	return &view{Title: "Quota " + name, Nav: "/quotas", Template: "quota", Body: &body, Note: note}, nil
}

// quotaTree has quotas by parent.
type quotaTree struct {
	byName   map[string]*visibility.Quota
	children map[string][]*visibility.Quota
}

// position of a quota in the tree.
type position struct {
	*visibility.Quota
	depth int
}

func newTree(quotas []visibility.Quota) *quotaTree {
	t := &quotaTree{map[string]*visibility.Quota{}, map[string][]*visibility.Quota{}}
	for i := range quotas {
		t.byName[quotas[i].Name] = &quotas[i]
	}
	for i := range quotas {
		parent := quotas[i].Status.Parent
		if t.byName[parent] == nil {
			parent = ""
		}
		t.children[parent] = append(t.children[parent], &quotas[i])
	}
	for _, below := range t.children {
		slices.SortFunc(below, func(a, b *visibility.Quota) int { return strings.Compare(a.Name, b.Name) })
	}
	return t
}

// order has all below a quota, parents before children. A loop of parents is nobody's child.
func (t *quotaTree) order(parent string) (all []position) {
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, q := range t.children[parent] {
			all = append(all, position{q, depth})
			if depth < len(t.byName) {
				walk(q.Name, depth+1)
			}
		}
	}
	walk(parent, 0)
	return all
}

func (t *quotaTree) row(at position, resource string, recent *recentUse) quotaRow {
	s := &at.Status
	row := quotaRow{Quota: at.Quota, Depth: at.depth, Holding: int(s.Holding), Waiting: int(s.Waiting)}
	pending := s.Pending.DeepCopy()
	for _, below := range t.order(at.Name) {
		row.Holding += int(below.Status.Holding)
		row.Waiting += int(below.Status.Waiting)
		pending = plus(pending, below.Status.Pending)
	}
	for _, name := range names(s.Max, s.Min, s.Limit, s.Used, s.Reserved) {
		if resource != "" && resource != string(name) ||
			float(s.Max, name)+float(s.Used, name)+float(s.Reserved, name)+float(pending, name) == 0 {
			continue
		}
		held := s.Used[name].DeepCopy()
		held.Add(s.Reserved[name])
		free := s.Limit[name].DeepCopy()
		free.Sub(held)
		r := resourceRow{
			Name: string(name), Min: given(s.Min, name), Runtime: given(s.Limit, name), Max: given(s.Max, name),
			Used: amount(s.Used, name), Reserved: amount(s.Reserved, name), Pending: amount(pending, name),
			Loan: t.loan(at.Quota, name),
		}
		if _, limited := s.Limit[name]; limited && free.Sign() > 0 {
			r.Free = number(name, free.AsApproximateFloat64())
		} else if limited {
			r.Free = "0"
		}
		r.Bar = barOf(at.Quota, name, pending, &r)
		r.Recent, r.Steps = recent.of(at.Name, name, s.Max)
		row.Resources = append(row.Resources, r)
	}
	return row
}

// plus adds amounts to a list.
func plus(to, amounts corev1.ResourceList) corev1.ResourceList {
	if to == nil {
		to = corev1.ResourceList{}
	}
	for name, amount := range amounts {
		sum := to[name]
		sum.Add(amount)
		to[name] = sum
	}
	return to
}

// barOf a resource: used, reserved and pending, with marks at min, runtime and max. It ends a little behind the last
// mark: pending amounts may be any number of times as large.
func barOf(q *visibility.Quota, name corev1.ResourceName, pending corev1.ResourceList, r *resourceRow) *charts.Bar {
	s := &q.Status
	pieces := []charts.Amount{
		{Class: "used", Name: "used", Number: float(s.Used, name), Text: r.Used},
		{Class: "reserved", Name: "reserved", Number: float(s.Reserved, name), Text: r.Reserved},
		{Class: "pending", Name: "pending", Number: float(pending, name), Text: r.Pending},
	}
	var marks []charts.Amount
	for _, m := range []struct {
		class string
		list  corev1.ResourceList
		text  string
	}{{"min", s.Min, r.Min}, {"runtime", s.Limit, r.Runtime}, {"max", s.Max, r.Max}} {
		if _, is := m.list[name]; is && !boundless(m.list, name) {
			marks = append(marks, charts.Amount{Class: m.class, Name: m.class, Number: float(m.list, name), Text: m.text})
		}
	}
	label := string(name) + " of " + q.Name + ": used " + r.Used + ", reserved " + r.Reserved + ", pending " + r.Pending
	for _, m := range marks {
		label += ", " + m.Name + " " + m.Text
	}
	return charts.NewBar(label, pieces, marks)
}

// loan says whether a quota holds more than its min, or leaves some of it to a sibling that does.
func (t *quotaTree) loan(q *visibility.Quota, name corev1.ResourceName) string {
	beyond := func(q *visibility.Quota) (float64, bool) {
		return float(q.Status.Used, name) + float(q.Status.Reserved, name) - float(q.Status.Min, name),
			t.byName[q.Status.Parent] != nil
	}
	switch n, bounded := beyond(q); {
	case !bounded:
		return ""
	case n > 0:
		return "borrows " + number(name, n)
	case n < 0:
		for _, sibling := range t.children[q.Status.Parent] {
			if m, _ := beyond(sibling); m > 0 {
				return "lends up to " + number(name, -n)
			}
		}
	}
	return ""
}

func float(list corev1.ResourceList, name corev1.ResourceName) float64 {
	q := list[name]
	return q.AsApproximateFloat64()
}

func amount(list corev1.ResourceList, name corev1.ResourceName) string {
	q := list[name]
	return number(name, q.AsApproximateFloat64())
}

// given is an amount that a list has to name.
func given(list corev1.ResourceList, name corev1.ResourceName) string {
	switch _, is := list[name]; {
	case !is:
		return ""
	case boundless(list, name):
		return "unlimited"
	}
	return amount(list, name)
}

// boundless is an amount that stands for no limit: Koordinator writes a fifth of the greatest number, or more.
func boundless(list corev1.ResourceList, name corev1.ResourceName) bool {
	q := list[name]
	if name == corev1.ResourceCPU {
		return q.MilliValue() >= math.MaxInt64/5
	}
	return q.Value() >= math.MaxInt64/5
}

func resourcesOf(quotas []visibility.Quota) (all []string) {
	lists := make([]corev1.ResourceList, 0, 2*len(quotas))
	for i := range quotas {
		lists = append(lists, quotas[i].Status.Max, quotas[i].Status.Used)
	}
	for _, name := range names(lists...) {
		all = append(all, string(name))
	}
	return all
}

// cordoned is what nodes have that take no pods: the limit of the top is below its max.
func cordoned(quotas []visibility.Quota) (all []string) {
	for i := range quotas {
		s := &quotas[i].Status
		if s.Parent != "" || !s.Exists {
			continue
		}
		for _, name := range names(s.Max) {
			if _, limited := s.Limit[name]; !limited {
				continue
			}
			if n := float(s.Max, name) - float(s.Limit, name); n > 0 {
				all = append(all, number(name, n)+" "+string(name))
			}
		}
	}
	return all
}

// recentUse is what quotas held in the last hours, step by step.
type recentUse struct {
	missing string
	begin   time.Time
	step    time.Duration
	held    map[string]map[corev1.ResourceName][]float64
}

// recentOf reads the record. A quota has also what is held below it.
func recentOf(q *question, quotas []visibility.Quota) *recentUse {
	u := &recentUse{step: recent / recentSteps, held: map[string]map[corev1.ResourceName][]float64{}}
	to := q.now.Truncate(u.step).Add(u.step)
	u.begin = to.Add(-recent)
	query := answers.RecordQuery{Namespace: q.query.Get("namespace"), Since: u.begin, Limit: mostRecords}
	found, err := q.Records(q.Context, &query)
	if apierrors.IsForbidden(err) && query.Namespace == "" {
		query.Namespace = q.Namespace()
		found, err = q.Records(q.Context, &query)
	}
	if err != nil {
		u.missing = err.Error()
		return u
	}
	units, err := q.Admitted(q.Context, query.Namespace, mostRecords)
	if err != nil {
		u.missing = err.Error()
		return u
	}
	parents := map[string]string{}
	for i := range quotas {
		parents[quotas[i].Name] = quotas[i].Status.Parent
	}
	for _, h := range answers.HoldingsOf(found.Items, units, u.begin, q.now) {
		for name, depth := h.Quota, 0; name != "" && depth <= len(parents); name, depth = parents[name], depth+1 {
			u.add(name, &h)
		}
	}
	return u
}

// add the mean of what was held in each step.
func (u *recentUse) add(quota string, h *answers.Holding) {
	of := u.held[quota]
	if of == nil {
		of = map[corev1.ResourceName][]float64{}
		u.held[quota] = of
	}
	for name, amount := range h.Amount {
		if of[name] == nil {
			of[name] = make([]float64, recentSteps)
		}
		for i := range of[name] {
			from := u.begin.Add(time.Duration(i) * u.step)
			to := from.Add(u.step)
			if during := minTime(to, h.To).Sub(maxTime(from, h.From)); during > 0 {
				of[name][i] += amount.AsApproximateFloat64() * float64(during) / float64(u.step)
			}
		}
	}
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (u *recentUse) of(
	quota string, name corev1.ResourceName, limits corev1.ResourceList,
) (chart *charts.Steps, rows []stepRow) {
	if u.missing != "" {
		return nil, nil
	}
	held := u.held[quota][name]
	if held == nil {
		held = make([]float64, recentSteps)
	}
	limit := 0.0
	if !boundless(limits, name) {
		limit = float(limits, name)
	}
	const perRow = 6 // an hour
	for i := 0; i < len(held); i += perRow {
		greatest := slices.Max(held[i:min(i+perRow, len(held))])
		rows = append(rows, stepRow{u.begin.Add(time.Duration(i) * u.step).UTC().Format("15:04"), number(name, greatest)})
	}
	return charts.NewSteps(string(name)+" of "+quota+" held in the last 6 hours", held, limit), rows
}
