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

package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/counted"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/podbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// compareUnits compares every listed unit with its record, and the record with the core.
func (a *audit) compareUnits(ctx context.Context) error {
	var version string
	err := a.Sources.EachUnitPage(ctx, func(units []*objects.Unit, listVersion string) error {
		version = listVersion
		for chunk := range slices.Chunk(units, auditChunk) {
			if err := a.ask(func() { a.compareListed(chunk) }); err != nil {
				return err
			}
		}
		return nil
	})
	a.version, a.result.Units = version, len(a.listed)
	return err
}

func (a *audit) compareListed(units []*objects.Unit) {
	for _, u := range units {
		key := u.Key()
		a.listed[key] = u.UID
		rec := a.Units.Get(key)
		switch {
		case rec == nil:
			a.suspectUnit(u, "unit", "unknown", "uid "+string(u.UID))
		case rec.Object.UID != u.UID:
			a.suspectUnit(u, "uid", string(rec.Object.UID), string(u.UID))
		case mail.Newer(u, rec.Object):
			a.suspectUnit(u, "resourceVersion", rec.Object.ResourceVersion, u.ResourceVersion)
		default:
			a.compareWithCore(key, rec)
		}
	}
}

// compareWithCore compares the record, which is immutable once it was read, with what the core made of it. The two
// change in one step, so a difference is real at once; a state that is about to be rebuilt is not looked at.
func (a *audit) compareWithCore(key string, rec *unitbook.Record) {
	if rec.Flight != nil || !a.Core.Sound() {
		return
	}
	a.mismatches(DifferenceUnit, a.Core.Read().Audit().Unit(a.Resolve(rec.Object)))
	a.mismatches(DifferenceQueue, a.Core.Read().Audit().Place(key))
}

func (a *audit) mismatches(kind DifferenceKind, list []admission.Mismatch) {
	for _, m := range list {
		a.found(Difference{kind, m.Object, m.Field, m.Have, m.Want})
	}
}

// suspectUnit: the API is ahead of us. The difference is real if we are still behind at the second look, and the object
// still exists.
func (a *audit) suspectUnit(u *objects.Unit, field, ours, theirs string) {
	key := u.Key()
	a.suspect(suspicion{
		Difference: Difference{DifferenceUnit, key, field, ours, theirs},
		again: func() bool {
			rec := a.Units.Get(key)
			return !a.Sources.WatchIsBefore(u.ResourceVersion) &&
				(rec == nil || rec.Object.UID != u.UID || mail.Newer(u, rec.Object))
		},
		exists: func(ctx context.Context) (bool, error) { return a.unitExists(ctx, u) },
	})
}

func (a *audit) unitExists(ctx context.Context, u *objects.Unit) (bool, error) {
	found, err := objects.GetUnit(ctx, a.Client, types.NamespacedName{Namespace: u.Namespace, Name: u.Name})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return found.UID == u.UID, nil
}

// compareUnlisted finds units that the engine has and the API lacks. Units that are newer than the list do not count.
func (a *audit) compareUnlisted(context.Context) error {
	return a.ask(func() {
		for _, key := range a.Units.Keys() {
			u := a.Units.Get(key).Object
			if _, listed := a.listed[key]; listed || objects.VersionAfter(u.ResourceVersion, a.version) {
				continue
			}
			a.suspect(suspicion{
				Difference: Difference{DifferenceUnit, key, "unit", "uid " + string(u.UID), "does not exist"},
				again: func() bool {
					rec := a.Units.Get(key)
					return !a.Sources.WatchIsBefore(a.version) && rec != nil && rec.Object.UID == u.UID
				},
				exists: func(ctx context.Context) (bool, error) {
					there, err := a.unitExists(ctx, u)
					return !there, err
				},
			})
		}
	})
}

// compareSums compares the ledger with its rebuild, and every queue with its order; each is of one moment.
func (a *audit) compareSums(context.Context) error {
	var queues []string
	err := a.ask(func() {
		if !a.Core.Sound() {
			return
		}
		for _, q := range a.Core.Read().Queues() {
			queues = append(queues, q.Name)
		}
		for _, d := range a.Core.Read().Audit().Ledger() {
			a.found(Difference{DifferenceLedger, d.Level, d.Resource, fmt.Sprint(d.Ledger), fmt.Sprint(d.Rebuilt)})
		}
	})
	if err != nil {
		return err
	}
	for _, queue := range queues {
		err := a.ask(func() {
			if a.Core.Sound() {
				a.mismatches(DifferenceQueue, a.Core.Read().Audit().Queue(queue))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compareUsed compares what the ledger takes for counted in used with used. Less is no difference: the rest are pods of
// others. More means that capacity is given away twice (I1).
func (a *audit) compareUsed(context.Context) error {
	return a.ask(func() {
		over := a.overcounted()
		a.result.Levels = len(a.Quotas.Levels())
		for _, d := range over {
			a.suspect(suspicion{Difference: d, again: func() bool {
				return slices.ContainsFunc(a.overcounted(), func(x Difference) bool {
					return x.Object == d.Object && x.Field == d.Field
				})
			}})
		}
	})
}

// overcounted lists where pods of units are in the ledger with more than Koordinator's used says now.
func (a *audit) overcounted() []Difference {
	var out []Difference
	found, _ := a.Quotas.Peek()
	assigned := counted.At(found, func(level string) (at resources.List) {
		a.Core.Call("", func(s *admission.State) { at = s.Holdings().Read(level).Assigned().List() })
		return at
	})
	for _, q := range found {
		for _, it := range assigned[q.Name].Items() {
			used, there := q.Used.Get(it.Name)
			if there && it.Amount > used {
				out = append(out, Difference{DifferenceUsed, q.Name, it.Name,
					resources.Format(it.Name, it.Amount), resources.Format(it.Name, used)})
			}
		}
	}
	return out
}

// comparePods compares the engine's pods with the scheduler's cache.
func (a *audit) comparePods(context.Context) error {
	if a.PodCache == nil {
		return nil
	}
	cached := map[types.UID]*corev1.Pod{}
	var concerned []*corev1.Pod
	for _, obj := range a.PodCache.GetStore().List() {
		pod, ok := obj.(*corev1.Pod)
		if ok && a.Managed.Concerns(pod) && !podbook.IsOver(pod) {
			cached[pod.UID] = pod
			concerned = append(concerned, pod)
		}
	}
	slices.SortFunc(concerned, func(x, y *corev1.Pod) int { return cmp.Compare(x.UID, y.UID) })
	a.result.Pods = len(concerned)
	for chunk := range slices.Chunk(concerned, auditChunk) {
		err := a.ask(func() {
			for _, pod := range chunk {
				if field, ours, theirs := a.Pods.Unlike(pod); field != "" {
					a.suspectPod(pod, field, ours, theirs)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return a.ask(func() {
		a.Pods.Each(func(uid types.UID, pod *corev1.Pod) {
			if cached[uid] == nil {
				a.suspectGonePod(uid, pod)
			}
		})
	})
}

func (a *audit) cachedPod(pod *corev1.Pod) *corev1.Pod {
	obj, _, err := a.PodCache.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	if now, ok := obj.(*corev1.Pod); err == nil && ok && now.UID == pod.UID && !podbook.IsOver(now) {
		return now
	}
	return nil
}

func (a *audit) suspectPod(pod *corev1.Pod, field, ours, theirs string) {
	a.suspect(suspicion{
		Difference: Difference{DifferencePod, pod.Namespace + "/" + pod.Name, field, ours, theirs},
		again: func() bool {
			if a.cachedPod(pod) == nil {
				return false
			}
			still, _, _ := a.Pods.Unlike(pod)
			return still == field
		},
	})
}

func (a *audit) suspectGonePod(uid types.UID, pod *corev1.Pod) {
	key := pod.Namespace + "/" + pod.Name
	a.suspect(suspicion{
		Difference: Difference{DifferencePod, key, "pod", "uid " + string(uid), "is over or does not exist"},
		again:      func() bool { return a.Pods.Known(uid) && a.cachedPod(pod) == nil },
	})
}
