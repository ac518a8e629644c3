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

package quota

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
)

func cpu(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

type quotaOption func(*v1alpha1.ElasticQuota)

func under(parent string) quotaOption {
	return func(q *v1alpha1.ElasticQuota) {
		if parent != "" {
			q.Labels[extension.LabelQuotaParent] = parent
		}
	}
}

func isParent(q *v1alpha1.ElasticQuota) { q.Labels[extension.LabelQuotaIsParent] = "true" }

func notLent(q *v1alpha1.ElasticQuota) { q.Labels[extension.LabelAllowLentResource] = "false" }

func elasticQuota(name, min, max string, options ...quotaOption) *v1alpha1.ElasticQuota {
	q := &v1alpha1.ElasticQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{}},
		Spec:       v1alpha1.ElasticQuotaSpec{Min: cpu(min), Max: cpu(max)},
	}
	for _, option := range options {
		option(q)
	}
	return q
}

func quotaArgs(runtime bool) *config.ElasticQuotaArgs {
	huge := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(1<<62/1000, resource.DecimalSI)}
	return &config.ElasticQuotaArgs{
		EnableRuntimeQuota: runtime, EnableMinQuotaScale: true,
		DefaultQuotaGroupMax: huge, SystemQuotaGroupMax: huge,
	}
}

func newTestShadow(t *testing.T, total string, quotas ...*v1alpha1.ElasticQuota) *shadow {
	t.Helper()
	s := newShadow("", quotaArgs(true), false)
	s.setTotal(cpu(total))
	for _, q := range quotas {
		s.setSpec(q.Name, q)
	}
	return s
}

// runtimes returns the runtime of a quota and of its ancestors without the root, by name; nil for a quota that the
// shadow has not been given (yet).
func (s *shadow) runtimes(name string) map[string]corev1.ResourceList {
	s.settle()
	var found map[string]corev1.ResourceList
	for at := s.shares.byName[name]; at != nil && at != s.shares.root; at = at.parent {
		if found == nil {
			found = map[string]corev1.ResourceList{}
		}
		limit, _ := s.limit(at.name)
		found[at.name] = toResourceList(limit)
	}
	return found
}

func (s *shadow) milli(name string) int64 {
	runtime := s.runtimes(name)[name]
	return runtime.Cpu().MilliValue()
}

func milliOf(list corev1.ResourceList) int64 { return list.Cpu().MilliValue() }

func TestDemandOfQueuedJobsGivesTheRuntimeThatTheirPodsWouldHave(t *testing.T) {
	for _, tt := range []struct {
		name         string
		demandA      string
		demandB      string
		wantA, wantB int64
	}{
		{"nothing asked", "0", "0", 0, 0},
		{"the other does not need its share", "80", "10", 80000, 10000},
		{"both ask for more than half", "80", "80", 50000, 50000},
		{"what one leaves over the other gets", "80", "45", 55000, 45000},
		{"a backlog above max changes nothing", "800", "45", 55000, 45000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestShadow(t, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
			s.setDemand("a", cpu(tt.demandA))
			s.setDemand("b", cpu(tt.demandB))
			require.Equal(t, tt.wantA, s.milli("a"))
			require.Equal(t, tt.wantB, s.milli("b"))
		})
	}
}

func TestLivePodsAndDemandAddUp(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	s.setLive("a", cpu("30"), cpu("30"))
	s.setDemand("a", cpu("50"))
	s.setDemand("b", cpu("10"))
	require.EqualValues(t, 80000, s.milli("a"))
	// The pods come: what was demand is live now, and the sum is what counts.
	s.setLive("a", cpu("80"), cpu("30"))
	s.setDemand("a", nil)
	require.EqualValues(t, 80000, s.milli("a"))
}

func TestDemandBeyondMaxIsNotPropagated(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "40", "60"), elasticQuota("b", "40", "100"))
	require.True(t, s.setDemand("a", cpu("60")))
	require.False(t, s.setDemand("a", cpu("600")))
	require.False(t, s.setDemand("a", cpu("61")))
	require.True(t, s.setDemand("a", cpu("59")))
}

func TestMinIsScaledWhenTheClusterIsTooSmallForIt(t *testing.T) {
	s := newTestShadow(t, "50", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	s.setDemand("a", cpu("80"))
	s.setDemand("b", cpu("80"))
	require.EqualValues(t, 25000, s.milli("a"))
	require.EqualValues(t, 25000, s.milli("b"))
	require.True(t, s.setTotal(cpu("100")), "the total is given as a whole, the manager takes differences")
	require.False(t, s.setTotal(cpu("100")))
	require.EqualValues(t, 50000, s.milli("a"))
	s.setTotal(cpu("50"))
	require.EqualValues(t, 25000, s.milli("a"))
}

func TestParentsLimitTheirChildren(t *testing.T) {
	s := newTestShadow(t, "100",
		elasticQuota("p1", "10", "80", under("p")), elasticQuota("p2", "10", "80", under("p")),
		elasticQuota("p", "60", "80", isParent), elasticQuota("q", "40", "100"))
	s.setDemand("p1", cpu("80"))
	s.setDemand("q", cpu("10"))
	found := s.runtimes("p1")
	require.Equal(t, int64(80000), milliOf(found["p"]))
	require.Equal(t, int64(80000), milliOf(found["p1"]))
	require.NotContains(t, found, extension.RootQuotaName)
	require.EqualValues(t, 0, s.milli("p2"))
	require.EqualValues(t, 10000, s.milli("q"))
}

func TestQuotasMayComeBeforeTheirParents(t *testing.T) {
	ordered := newTestShadow(t, "100", elasticQuota("p", "60", "80", isParent), elasticQuota("c", "10", "70", under("p")),
		elasticQuota("q", "0", "100"))
	reversed := newTestShadow(t, "100", elasticQuota("q", "0", "100"), elasticQuota("c", "10", "70", under("p")))
	require.Nil(t, reversed.runtimes("c"), "a quota without its parent has no share")
	reversed.setDemand("c", cpu("70"))
	reversed.setSpec("p", elasticQuota("p", "60", "80", isParent))
	ordered.setDemand("c", cpu("70"))
	for _, s := range []*shadow{ordered, reversed} {
		s.setDemand("q", cpu("100"))
	}
	require.Equal(t, ordered.milli("c"), reversed.milli("c"))
	require.Equal(t, ordered.milli("q"), reversed.milli("q"))
	require.NotZero(t, ordered.milli("c"))
}

func TestManyQuotasAtOnceAreTheSameAsOneByOne(t *testing.T) {
	quotas := []*v1alpha1.ElasticQuota{
		elasticQuota("p", "60", "80", isParent), elasticQuota("p1", "50", "80", under("p")),
		elasticQuota("p2", "40", "80", under("p"), notLent),
		elasticQuota("q", "40", "100"), elasticQuota("lost", "1", "100", under("nobody")),
		elasticQuota("lost1", "1", "100", under("lost")),
	}
	single := newTestShadow(t, "90", quotas...)
	whole := newTestShadow(t, "90")
	specs := map[string]*v1alpha1.ElasticQuota{}
	for _, q := range quotas {
		specs[q.Name] = q
		whole.asks[q.Name] = ask{demand: cpu("70")}
		single.setDemand(q.Name, cpu("70"))
	}
	whole.fill(specs)
	require.Nil(t, whole.runtimes("lost1"))
	for _, s := range []*shadow{single, whole} {
		s.setSpec("nobody", elasticQuota("nobody", "5", "30", isParent))
	}
	for _, q := range quotas {
		require.NotZero(t, single.milli(q.Name), q.Name)
		require.Equal(t, single.milli(q.Name), whole.milli(q.Name), q.Name)
	}
}

func TestADeletedQuotaLeavesItsShareToOthers(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	s.setDemand("a", cpu("80"))
	s.setDemand("b", cpu("80"))
	require.True(t, s.setSpec("b", nil))
	require.Nil(t, s.runtimes("b"))
	require.EqualValues(t, 80000, s.milli("a"))
	require.False(t, s.setSpec("b", nil), "deleting again changes nothing")
	// It comes back, and what is asked of it is still known.
	s.setSpec("b", elasticQuota("b", "40", "100"))
	require.EqualValues(t, 50000, s.milli("a"))
	require.EqualValues(t, 50000, s.milli("b"))
}

func TestADeletedParentTakesItsChildrenAlong(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("p", "60", "80", isParent), elasticQuota("c", "10", "70", under("p")),
		elasticQuota("q", "0", "100"))
	s.setDemand("c", cpu("70"))
	s.setDemand("q", cpu("100"))
	before := s.milli("q")
	s.setSpec("p", nil)
	require.Nil(t, s.runtimes("c"))
	require.EqualValues(t, 100000, s.milli("q"))
	s.setSpec("p", elasticQuota("p", "60", "80", isParent))
	require.EqualValues(t, before, s.milli("q"))
	require.NotZero(t, s.milli("c"))
}

func TestReParenting(t *testing.T) {
	s := newTestShadow(t, "100",
		elasticQuota("p", "20", "20", isParent), elasticQuota("r", "80", "80", isParent),
		elasticQuota("c", "0", "60", under("p")))
	s.setDemand("c", cpu("60"))
	require.EqualValues(t, 20000, s.milli("c"))
	s.setSpec("c", elasticQuota("c", "0", "60", under("r")))
	require.EqualValues(t, 60000, s.milli("c"))
	request := s.mgr.GetQuotaInfoByName("p").GetRequest()
	require.Zero(t, request.Cpu().MilliValue())
	s.setSpec("c", elasticQuota("c", "0", "60", under("nobody")))
	require.Nil(t, s.runtimes("c"))
	s.setSpec("c", elasticQuota("c", "0", "60", under("p")))
	require.EqualValues(t, 20000, s.milli("c"))
}

// Of a parent that moves, Koordinator takes all that its children ask for from the former parent, though no more than
// its max was added there: what others ask for there is forgotten.
func TestAParentThatMovesLeavesWhatItsSiblingsAskFor(t *testing.T) {
	s := newTestShadow(t, "100",
		elasticQuota("from", "10", "50", isParent), elasticQuota("to", "10", "50", isParent),
		elasticQuota("moves", "0", "3", isParent, under("from")), elasticQuota("child", "5", "5", under("moves"), notLent),
		elasticQuota("stays", "0", "20", under("from")))
	s.setDemand("stays", cpu("2"))
	require.EqualValues(t, 2000, s.milli("stays"))
	s.setSpec("moves", elasticQuota("moves", "0", "3", isParent, under("to")))
	require.EqualValues(t, 2000, s.milli("stays"))
	require.EqualValues(t, 3000, s.milli("to"))
	s.setDemand("child", cpu("4"))
	s.setSpec("moves", elasticQuota("moves", "0", "3", isParent, under("from")))
	require.EqualValues(t, 2000, s.milli("stays"))
	require.EqualValues(t, 5000, s.milli("from"))
	require.EqualValues(t, 0, s.milli("to"))
}

// TestElasticQuotaForgetsRequestsWhenAParentMoves: it does so itself, until it starts anew. Whoever corrects that makes
// this test fail; then the shadow may move parents as well.
func TestElasticQuotaForgetsRequestsWhenAParentMoves(t *testing.T) {
	args := quotaArgs(true)
	mgr := core.NewGroupQuotaManager("", true, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax)
	mgr.UpdateClusterTotalResource(cpu("100"))
	quotas := []*v1alpha1.ElasticQuota{
		elasticQuota("from", "10", "50", isParent), elasticQuota("to", "10", "50", isParent),
		elasticQuota("moves", "0", "3", isParent, under("from")), elasticQuota("child", "5", "5", under("moves"), notLent),
		elasticQuota("stays", "0", "20", under("from")),
	}
	for _, q := range quotas {
		require.NoError(t, mgr.UpdateQuota(q))
	}
	mgr.OnPodAdd("stays", aggregatePod("pending", cpu("2")))
	require.EqualValues(t, 5000, milliOf(mgr.GetQuotaInfoByName("from").GetRequest()))
	require.NoError(t, mgr.UpdateQuota(elasticQuota("moves", "0", "3", isParent, under("to"))))
	require.EqualValues(t, 0, milliOf(mgr.GetQuotaInfoByName("from").GetRequest()),
		"5 were taken off, of which 3 were added")
	require.EqualValues(t, 0, milliOf(mgr.RefreshRuntime("stays")))
	mgr.ResetQuota()
	require.EqualValues(t, 2000, milliOf(mgr.GetQuotaInfoByName("from").GetRequest()))
	require.EqualValues(t, 2000, milliOf(mgr.RefreshRuntime("stays")))
}

// Quotas whose parents form a circle are out until one of them moves away.
func TestParentsThatFormACircleAreLeftOut(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "10", "50", isParent),
		elasticQuota("b", "10", "50", isParent, under("a")), elasticQuota("c", "0", "20", under("b")))
	s.setDemand("c", cpu("2"))
	s.setSpec("a", elasticQuota("a", "10", "50", isParent, under("b")))
	for _, name := range []string{"a", "b", "c"} {
		require.Nil(t, s.runtimes(name), name)
	}
	s.setSpec("a", elasticQuota("a", "10", "50", isParent))
	require.EqualValues(t, 2000, s.milli("c"))
}

func TestSpecChangesKeepWhatIsAsked(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	s.setDemand("a", cpu("80"))
	s.setDemand("b", cpu("80"))
	s.setSpec("a", elasticQuota("a", "40", "30"))
	require.EqualValues(t, 30000, s.milli("a"))
	require.EqualValues(t, 70000, s.milli("b"))
	s.setSpec("a", elasticQuota("a", "50", "100"))
	require.EqualValues(t, 55000, s.milli("a"), "what is asked beyond the old max is known again")
	s.setSpec("a", elasticQuota("a", "40", "100", notLent))
	s.setDemand("a", nil)
	require.EqualValues(t, 40000, s.milli("a"), "what is not lent stays with its owner")
	require.EqualValues(t, 60000, s.milli("b"))
}

func TestResourcesThatMaxNamesLater(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "0", "100"), elasticQuota("b", "0", "100"))
	total := cpu("100")
	total["nvidia.com/gpu"] = resource.MustParse("8")
	s.setTotal(total)
	demand := cpu("10")
	demand["nvidia.com/gpu"] = resource.MustParse("6")
	s.setDemand("a", demand)
	withGPU := elasticQuota("a", "0", "100")
	withGPU.Spec.Max["nvidia.com/gpu"] = resource.MustParse("4")
	s.setSpec("a", withGPU)
	gpu := s.runtimes("a")["a"]["nvidia.com/gpu"]
	require.EqualValues(t, 4, gpu.Value())
	s.setSpec("a", elasticQuota("a", "0", "100"))
	require.NotContains(t, s.runtimes("a")["a"], corev1.ResourceName("nvidia.com/gpu"))
	require.EqualValues(t, 10000, s.milli("a"))
}

func TestUseOfTheDefaultQuotaIsTakenOffTheTotal(t *testing.T) {
	s := newTestShadow(t, "100", elasticQuota("a", "0", "100"), elasticQuota("b", "0", "100"))
	s.setDemand("a", cpu("100"))
	s.setDemand("b", cpu("100"))
	require.EqualValues(t, 50000, s.milli("a"))
	require.True(t, s.setLive(extension.DefaultQuotaName, cpu("20"), cpu("20")))
	s.settle()
	free := s.mgr.RefreshRuntime(extension.RootQuotaName)
	require.EqualValues(t, 80000, free.Cpu().MilliValue())
	require.Less(t, s.milli("a"), int64(50000))
	s.setLive(extension.DefaultQuotaName, nil, nil)
	require.EqualValues(t, 50000, s.milli("a"))
	require.False(t, s.setDemand(extension.DefaultQuotaName, cpu("100")),
		"jobs that only wait in the default quota starve nobody")
	require.EqualValues(t, 50000, s.milli("a"))
}

func TestStatusOfAQuotaIsNotItsSpec(t *testing.T) {
	a := elasticQuota("a", "40", "100")
	b := a.DeepCopy()
	b.Generation, b.ResourceVersion = 7, "9"
	b.Status.Used = cpu("3")
	b.Annotations = map[string]string{extension.AnnotationRequest: "{}", extension.AnnotationRuntime: "{}"}
	require.True(t, sameSpec(a, b))
	b.Annotations[extension.AnnotationSharedWeight] = `{"cpu":"1"}`
	require.False(t, sameSpec(a, b))
}
