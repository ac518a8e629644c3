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
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/queuestatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The API can import no code of the core, nor the core the API, so the names of the built-in policies are written
// twice.
func TestTheAPINamesTheBuiltinPolicies(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/scheduling/v1alpha1/queue_types.go", nil, 0)
	require.NoError(t, err)
	var named []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "QueuePolicy" {
				name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				named = append(named, name)
			}
		}
		return true
	})
	require.ElementsMatch(t, slices.Collect(maps.Keys(queue.Builtin())), named)
	for _, name := range named {
		require.True(t, v1alpha1.QueuePolicy(name).WellFormed(), name)
	}
}

// newestFirst serves the newest unit first.
type newestFirst struct{ queue.Policy }

func (p newestFirst) Compare(a, b queue.Item) int { return p.Policy.Compare(b, a) }

// tooLarge lets no unit with two pods or more go.
type tooLarge struct{}

func (tooLarge) Key(u unit.Unit) string { return strconv.FormatBool(u.Pods > 1) }

func (tooLarge) Check(u unit.Unit) (unit.Reason, string) {
	if u.Pods > 1 {
		return "TooLarge", "it has more than one pod"
	}
	return "", ""
}

func extended(t *testing.T, quotas *fakeQuotas, o Options) *rig {
	r := newRig(t, quotas)
	clock := clocktesting.NewFakeClock(testStart)
	o.Client, o.Metadata, o.Quotas, o.Clock, o.Metrics = r.api.rest, metadataOf{r.api.client}, quotas, clock, r.metrics
	o.Submit = func(w *statuswrite.Write) { r.submitted = append(r.submitted, w) }
	e, err := New(o)
	require.NoError(t, err)
	r.engine, r.drive = e, Drive(e)
	r.clock = clock
	return r
}

func created(at time.Time) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetCreationTimestamp(metav1.NewTime(at)) }
}

// active is the condition of a Queue as it was written.
func (r *rig) active(name string) *metav1.Condition {
	return meta.FindStatusCondition(queueFrom(r.readQueue(name), "Priority").Conditions, queuestatus.ConditionActive)
}

// The core decides with the registered extensions, and the statuses of the queues name the same policies.
func TestRegisteredExtensionsAreUsed(t *testing.T) {
	r := extended(t, quotasOf(2, testQuota), Options{
		Policies: map[string]queue.Factory{"NewestFirst": func(n int32) queue.Policy {
			return newestFirst{queue.Builtin()["FIFO"](n)}
		}},
		Checks: []queue.Check{tooLarge{}},
	})
	r.createQueue(testQuota, map[string]any{"queuePolicy": "NewestFirst"})
	r.unit("old", 1, created(testStart))
	r.unit("new", 1, created(testStart.Add(time.Second)))
	large := r.unit("large", 2, created(testStart.Add(2*time.Second)))
	r.lead()

	require.Equal(t, []string{"new", "old"}, keysOf(r.decisions()), "the newest first, but for the one that is too large")
	why, message, _ := r.engine.core.Read().Why(large)
	require.Equal(t, unit.Reason("TooLarge"), why)
	require.Contains(t, message, "more than one pod")
	require.Equal(t, 1, r.sendQueues())
	require.Equal(t, metav1.ConditionTrue, r.active(testQuota).Status, "%v", r.active(testQuota))
}

// A policy that nobody registered is told by the condition of the queue, and its units are parked.
func TestAPolicyThatIsNotRegisteredIsTold(t *testing.T) {
	r := extended(t, quotasOf(4, testQuota), Options{})
	r.createQueue(testQuota, map[string]any{"queuePolicy": "NewestFirst"})
	key := r.unit("a", 1)
	r.lead()

	require.Empty(t, r.decisions())
	why, message, _ := r.engine.core.Read().Why(key)
	require.Equal(t, unit.ReasonUnknownPolicy, why)
	require.Contains(t, message, "NewestFirst")
	require.Equal(t, 1, r.sendQueues())
	c := r.active(testQuota)
	require.Equal(t, metav1.ConditionFalse, c.Status)
	require.Equal(t, string(unit.ReasonUnknownPolicy), c.Reason)

	q := r.readQueue(testQuota)
	require.NoError(t, unstructured.SetNestedField(q.Object, "Block", "spec", "queuePolicy"))
	q.SetResourceVersion("2")
	r.drive.FeedQueue(q, false)
	r.advance(5 * time.Second)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
	require.Equal(t, 1, r.sendQueues())
	require.Equal(t, metav1.ConditionTrue, r.active(testQuota).Status)
}

// budget lets units go while it is open.
type budget struct{ open atomic.Bool }

func (*budget) Key(unit.Unit) string { return "" }

func (b *budget) Check(unit.Unit) (unit.Reason, string) {
	if !b.open.Load() {
		return "BudgetSpent", "the budget of this month is spent"
	}
	return "", ""
}

// A check is asked again about pending units when it says that its answers changed, and not before.
func TestACheckSaysThatItsAnswersChanged(t *testing.T) {
	b := &budget{}
	r := extended(t, quotasOf(2, testQuota), Options{Checks: []queue.Check{b}})
	r.createQueue(testQuota, nil)
	r.unit("a", 1)
	r.lead()
	require.Empty(t, r.decisions())

	b.open.Store(true)
	r.advance(time.Second)
	require.Empty(t, r.decisions(), "nobody has said so")
	r.engine.Recheck()
	r.advance(time.Second)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
}
