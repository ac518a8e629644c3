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
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/koordinator-sh/koordinator/apis/extension"
	reservationutil "github.com/koordinator-sh/koordinator/pkg/util/reservation"
)

func TestTheHookTellsWhenAPodBeginsAndEndsToCount(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	pod := l.pod("x", "a", "7")
	l.addPod(pod)
	require.Empty(t, sink.assigned, "a pending pod does not count")
	reserved := pod.DeepCopy()
	reserved.Spec.NodeName = "n"
	l.mgr.ReservePod("a", reserved)
	// A status patch between reserve and bind shows the pod without its node.
	l.mgr.OnPodUpdate("a", "a", pod, pod)
	l.mgr.OnPodUpdate("a", "a", reserved, pod)
	l.mgr.OnPodDelete("a", reserved)
	require.Equal(t, []string{"+a/x", "-a/x"}, sink.assigned)
}

// The list of quotas does not show that a quota disappeared, because it may be back at once. A quota that gets another
// parent disappears and appears with its pods.
func TestTheHookTellsOfPodsWhoseQuotaGoes(t *testing.T) {
	a := elasticQuota("a", "40", "100")
	l := newLive(t, false, "100", elasticQuota("p", "0", "100", isParent), a)
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	pod := l.pod("x", "a", "7")
	pod.Spec.NodeName = "n"
	l.addPod(pod)
	l.addPod(l.pod("pending", "a", "7"))
	moved := elasticQuota("a", "40", "100", under("p"))
	require.NoError(t, l.mgr.UpdateQuota(moved))
	require.Equal(t, []string{"+a/x", "~a/x", "+a/x"}, sink.assigned)
	require.NoError(t, l.mgr.DeleteQuota(moved))
	require.NoError(t, l.mgr.UpdateQuota(moved))
	require.Equal(t, []string{"+a/x", "~a/x", "+a/x", "~a/x"}, sink.assigned, "made again, it counts no pod")
	l.mgr.OnPodUpdate("a", "a", pod, pod)
	require.Equal(t, []string{"+a/x", "~a/x", "+a/x", "~a/x", "+a/x"}, sink.assigned, "until ElasticQuota hears of it")
}

// ElasticQuota hears of every change of a pod; only one that counts with something else moves used.
func TestTheHookTellsOfACountedPodWhatMovesUsed(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	pod := l.pod("x", "a", "7")
	l.addPod(pod)
	l.mgr.ReservePod("a", pod)
	sink.drain()
	change := func(f func(*corev1.Pod)) []string {
		next := pod.DeepCopy()
		f(next)
		l.mgr.OnPodUpdate("a", "a", next, pod)
		pod = next
		return sink.drain()
	}
	require.Empty(t, change(func(p *corev1.Pod) { p.Spec.NodeName = "n" }))
	require.Empty(t, change(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
	require.Equal(t, []string{"a"}, change(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = cpu("8") }))
	require.Equal(t, []string{"a"}, change(func(p *corev1.Pod) { p.Labels[extension.LabelPreemptible] = "false" }))
	require.Empty(t, change(func(p *corev1.Pod) { p.Labels["other"] = "label" }))
}

// observedInBetween holds ElasticQuota up between the word of the hook and used, until used was observed. If that waits
// for ElasticQuota, it goes on after a while.
type observedInBetween struct {
	*recordingSink
	told, observed chan struct{}
}

func (s observedInBetween) PodAssigned(string, *corev1.Pod, bool) {
	close(s.told)
	select {
	case <-s.observed:
	case <-time.After(100 * time.Millisecond):
	}
}

// A pod that ElasticQuota's handler sees first when the pod is on a node counts from then on, and no reservation says
// so. After the hook has named the pod, an observation of used includes it.
func TestWhatTheHookSaidIsObserved(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	sink := observedInBetween{&recordingSink{}, make(chan struct{}), make(chan struct{})}
	l.adapter.Subscribe(sink)
	pod := l.pod("x", "a", "7")
	pod.Spec.NodeName = "n"
	var group sync.WaitGroup
	group.Go(func() { l.mgr.OnPodAdd("a", pod) })
	<-sink.told
	found, _ := l.adapter.Observe([]string{"a"})
	close(sink.observed)
	group.Wait()
	require.Equal(t, "cpu: 7", found[0].Used.String())
}

func TestTheHookTellsOfQuotas(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	h := &hook{shared: l.adapter}
	h.PostQuotaUpdate(nil, nil, elasticQuota("a", "1", "2"), nil)
	require.Equal(t, []string{"a"}, sink.drain())
	require.False(t, h.IsQuotaUpdated(nil, nil, nil))
	require.Nil(t, h.UpdateQuotaStatus(nil, nil))
}

func TestReservedQuotaIsKeptFromOtherPods(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	check := l.mgr.GetHookPlugins()[0].CheckPod
	l.addPod(func() *corev1.Pod {
		running := l.pod("running", "a", "30")
		running.Spec.NodeName = "n"
		return running
	}())
	l.observe("a")
	l.reserve("a", list(60000))
	stranger := l.pod("stranger", "a", "11")
	require.NoError(t, check("a", stranger), "protection is off")

	l.adapter.Protect(guardOf(func(pod *corev1.Pod) bool { return pod.Name == "mine" }))
	require.EqualError(t, check("a", stranger),
		"quota a is reserved for admitted jobs: cpu used 30000 + reserved 60000 + requested 11000 > limit 100000")
	require.NoError(t, check("a", l.pod("small", "a", "10")), "what is left over is free to all")
	require.NoError(t, check("a", l.pod("mine", "a", "60")), "a pod of an admitted job takes what is reserved for it")
	reserve := l.pod("reserve", "a", "60")
	reserve.Annotations = map[string]string{reservationutil.AnnotationReservePod: "true"}
	reserve.UID = "uid-of-reserve"
	require.Error(t, check("a", reserve), "anybody may write the annotation")
	reserve.Name = string(reserve.UID)
	require.NoError(t, check("a", reserve), "a Reservation does not count in used")
	require.NoError(t, check("b", stranger))
	l.reserve("a", list(0))
	require.NoError(t, check("a", stranger))
}

func TestReservedQuotaUnderRuntimeIsMeasuredAgainstTheRuntimeWithDemand(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "0", "100"), elasticQuota("b", "0", "100"))
	l.adapter.Protect(guardOf(func(*corev1.Pod) bool { return false }))
	l.want("a", list(80000))
	stranger := l.pod("stranger", "a", "10")
	l.addPod(stranger)
	l.observe("a", "b")
	l.reserve("a", list(80000))
	check := l.mgr.GetHookPlugins()[0].CheckPod
	require.NoError(t, check("a", stranger), "the live runtime, 10, knows nothing of the 80 that are reserved")
	big := l.pod("big", "a", "21")
	require.Error(t, check("a", big))
	require.NoError(t, check(extension.DefaultQuotaName, big))
}

// The runtime is at most the demand, and the request of a pod that has just arrived is not in it yet.
func TestReservedQuotaIsNotKeptFromAPodThatMinIsEnoughFor(t *testing.T) {
	for name, tc := range map[string]struct {
		total, passes, refused string
	}{
		"min":                     {"100", "20", "21"},
		"min that is scaled down": {"60", "0", "1"}, // 100 are promised of 60
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, true, tc.total, elasticQuota("a", "40", "100"), elasticQuota("b", "60", "100"))
			l.adapter.Protect(guardOf(func(*corev1.Pod) bool { return false }))
			l.want("a", list(20000))
			l.observe("a", "b")
			l.reserve("a", list(20000))
			check := l.mgr.GetHookPlugins()[0].CheckPod
			require.NoError(t, check("a", l.pod("passes", "a", tc.passes)))
			require.Error(t, check("a", l.pod("refused", "a", tc.refused)))
		})
	}
}

// The end of a reservation changes neither a pod nor a quota, so nothing else would bring the pod back.
func TestAPodThatReservedQuotaKeptOutIsTriedAgain(t *testing.T) {
	for name, end := range map[string]func(l *liveQuotas){
		"nothing is reserved any more": func(l *liveQuotas) { l.reserve("a", list(0)) },
		"less is reserved":             func(l *liveQuotas) { l.reserve("a", list(85000)) },
		"more may be used": func(l *liveQuotas) {
			l.set(elasticQuota("a", "40", "200"))
			l.observe("a")
			l.reserve("a", list(90000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
			check := l.mgr.GetHookPlugins()[0].CheckPod
			l.observe("a")
			l.reserve("a", list(90000))
			var again []string
			guard := guardOf(func(*corev1.Pod) bool { return false })
			guard.TryAgain = func(pods []types.NamespacedName) {
				for _, pod := range pods {
					again = append(again, pod.String())
				}
			}
			l.adapter.Protect(guard)
			stranger := l.pod("stranger", "a", "11")
			require.Error(t, check("a", stranger))
			require.NoError(t, check("a", l.pod("small", "a", "10")))
			l.reserve("a", list(90000))
			l.observe("a")
			require.Empty(t, again, "nothing has changed")
			end(l)
			require.Equal(t, []string{"default/stranger"}, again)
			require.NoError(t, check("a", stranger))
			l.reserve("a", list(0))
			require.Len(t, again, 1, "it is not refused any more")
		})
	}
}

// A pod of an admitted job on a node uses its reservation. So refused pods have the same room as before, and anybody
// can create any number of them.
func TestAPodThatTakesItsReservationBringsNobodyBack(t *testing.T) {
	l := newLive(t, false, "200", elasticQuota("a", "40", "100"))
	check := l.mgr.GetHookPlugins()[0].CheckPod
	l.observe("a")
	l.reserve("a", list(90000))
	again := map[string]int{}
	guard := guardOf(func(*corev1.Pod) bool { return false })
	guard.TryAgain = func(pods []types.NamespacedName) {
		for _, pod := range pods {
			again[pod.Name]++
		}
	}
	l.adapter.Protect(guard)
	for i := range 3 * mostTriedAgain {
		require.Error(t, check("a", l.pod(fmt.Sprintf("stranger-%d", i), "a", "11")))
	}
	require.Error(t, check("a", l.pod("large", "a", "60")))
	holder := l.pod("holder", "a", "60")
	l.addPod(holder)
	l.mgr.ReservePod("a", holder)
	l.reserve("a", list(30000))
	l.observe("a")
	require.Empty(t, again)
	l.reserve("a", list(20000))
	require.Len(t, again, mostTriedAgain, "there is room for one, and one of so many takes it")
	l.observe("a")
	l.observe("a")
	require.Len(t, again, 3*mostTriedAgain, "the others follow while there is room")
	require.NotContains(t, again, "large")
}

// Anybody may make pods that are refused, and delete them.
func TestRefusedPodsThatAreGoneAreForgotten(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	check := l.mgr.GetHookPlugins()[0].CheckPod
	l.observe("a")
	l.reserve("a", list(90000))
	l.adapter.Protect(guardOf(func(*corev1.Pod) bool { return false }))
	for i := range 100 {
		pod := l.pod(fmt.Sprintf("churn-%d", i), "a", "11")
		require.Error(t, check("a", pod))
		require.Error(t, check("a", pod), "twice")
		l.adapter.onPodGone(cache.DeletedFinalStateUnknown{Obj: pod})
	}
	require.Empty(t, l.adapter.protection.refused.pods)
	require.Empty(t, l.adapter.protection.refused.quotas)
}

// ElasticQuota may ignore parents (enableCheckParentQuota off, its default). Reserved quota of a parent is protected
// all the same: a plain pod in a sibling quota does not get it.
func TestReservedQuotaOfAParentIsKeptFromPodsOfSiblings(t *testing.T) {
	l := newLive(t, false, "1000",
		elasticQuota("p", "40", "100", isParent), elasticQuota("a", "0", "100", under("p")),
		elasticQuota("b", "0", "100", under("p")))
	check := l.mgr.GetHookPlugins()[0].CheckPod
	var again []string
	guard := guardOf(func(*corev1.Pod) bool { return false })
	guard.TryAgain = func(pods []types.NamespacedName) {
		for _, pod := range pods {
			again = append(again, pod.Name)
		}
	}
	l.adapter.Protect(guard)
	l.observe("a", "b")
	for _, name := range []string{"a", "p", extension.RootQuotaName} {
		l.reserve(name, list(60000))
	}
	stranger := l.pod("stranger", "b", "41")
	require.EqualError(t, check("b", stranger),
		"quota p is reserved for admitted jobs: cpu used 0 + reserved 60000 + requested 41000 > limit 100000")
	require.NoError(t, check("b", l.pod("small", "b", "40")))
	l.reserve("a", list(0))
	require.Empty(t, again, "the parent is still reserved")
	l.reserve("p", list(59000))
	require.Equal(t, []string{"stranger"}, again)
	require.NoError(t, check("b", stranger))
}

// Quota that a job takes becomes free on nodes. No pod of another quota binds there, even if its quota has room.
func TestWhatIsTakenIsKeptFromPodsOfTheWholeTree(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "0", "100"))
	check := l.mgr.GetHookPlugins()[0].CheckPod
	var again []string
	guard := guardOf(func(*corev1.Pod) bool { return false })
	guard.TryAgain = func(pods []types.NamespacedName) {
		for _, pod := range pods {
			again = append(again, pod.Name)
		}
	}
	l.adapter.Protect(guard)
	l.observe("a", "b")
	for _, name := range []string{"a", extension.RootQuotaName} {
		l.reserve(name, list(40000))
	}
	require.EqualError(t, check("b", l.pod("lurks", "b", "61")), "quota koordinator-root-quota is reserved for "+
		"admitted jobs: cpu used 0 + reserved 40000 + requested 61000 > limit 100000")
	require.NoError(t, check("b", l.pod("small", "b", "60")))
	require.NoError(t, check(extension.DefaultQuotaName, l.pod("daemon", "", "61")), "they are beside the total")
	l.reserve(extension.RootQuotaName, list(0))
	require.Equal(t, []string{"lurks"}, again)
}

// The webhook, if installed, refuses parents in a circle. A walk over them must end.
func TestProtectionSurvivesParentsInACircle(t *testing.T) {
	l := newLive(t, false, "1000",
		elasticQuota("p", "40", "100", isParent), elasticQuota("a", "0", "100", under("p")))
	l.observe("a")
	l.adapter.Protect(guardOf(func(*corev1.Pod) bool { return false }))
	l.reserve("p", list(60000))
	l.mgr.GetQuotaInfoByName("p").ParentName = "a"
	check := l.mgr.GetHookPlugins()[0].CheckPod
	require.Error(t, check("a", l.pod("big", "a", "41")), "what can be seen of the way up still counts")
	require.NoError(t, check("a", l.pod("small", "a", "40")))
}

func guardOf(admitted func(*corev1.Pod) bool) Guard {
	return Guard{Admitted: admitted, TryAgain: func([]types.NamespacedName) {}, Beyond: func(string, Cause, bool) {}}
}

// The short cut must see all that a request follows from.
func TestEveryPartOfARequestIsCompared(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	base := newLive(t, false, "100").pod("x", "a", "7")
	base.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("1")}}}
	for name, change := range map[string]func(*corev1.PodSpec){
		"container":       func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = cpu("8") },
		"init container":  func(s *corev1.PodSpec) { s.InitContainers[0].Resources.Requests = cpu("9") },
		"becomes sidecar": func(s *corev1.PodSpec) { s.InitContainers[0].RestartPolicy = &always },
		"overhead":        func(s *corev1.PodSpec) { s.Overhead = cpu("1") },
		"pod level":       func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Requests: cpu("20")} },
		"one more":        func(s *corev1.PodSpec) { s.Containers = append(s.Containers, s.Containers[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			next := base.DeepCopy()
			require.True(t, sameUsed(base, next))
			require.True(t, sameRequest(base, next))
			change(&next.Spec)
			require.False(t, sameUsed(base, next))
			require.False(t, sameRequest(base, next))
		})
	}
}
