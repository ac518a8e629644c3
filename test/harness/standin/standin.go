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

package standin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The kinds, by the names that Setup knows them by.
const (
	MPIJob           = "mpijob"
	SparkApplication = "sparkapplication"
	Workflow         = "workflow"
	LeaderWorkerSet  = "leaderworkerset"
)

// Kinds that can be played.
func Kinds() []string { return slices.Sorted(maps.Keys(operators(Options{}))) }

// Options of the reconcilers.
type Options struct {
	// Client must read from the API server and not from a cache: a new child must be seen, or it is created twice. Real
	// operators keep expectations for that.
	Client client.Client
	Clock  clock.PassiveClock
	// Suffix of names that operators draw; nil means five letters and digits at random.
	Suffix func() string
}

// operator plays one kind. For one object it is never called twice at once.
type operator interface {
	reconcile.Reconciler
	kind() schema.GroupVersionKind
	// watch adds what else it must hear of.
	watch(b *builder.Builder) *builder.Builder
}

func operators(o Options) map[string]operator {
	b := base{client: o.Client, clock: o.Clock, suffix: o.Suffix}
	if b.suffix == nil {
		b.suffix = func() string { return rand.String(5) }
	}
	return map[string]operator{
		MPIJob:           &mpiJobs{b},
		SparkApplication: &sparkApplications{b},
		Workflow:         &workflows{b},
		LeaderWorkerSet:  &leaderWorkerSets{b},
	}
}

// Setup adds the reconcilers of the kinds to the manager. Their CRDs must be there.
func Setup(mgr manager.Manager, kinds []string, o Options) error {
	known := operators(o)
	for _, name := range kinds {
		op := known[name]
		if op == nil {
			return fmt.Errorf("nobody here plays %q; there are %v", name, Kinds())
		}
		b := ctrl.NewControllerManagedBy(mgr).Named(name).For(newObject(op.kind()))
		if err := op.watch(b).Complete(op); err != nil {
			return fmt.Errorf("set up %s: %w", name, err)
		}
	}
	return nil
}

// base is what every operator has.
type base struct {
	client client.Client
	clock  clock.PassiveClock
	suffix func() string
}

func newObject(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// get returns nil when there is none of that name.
func (b *base) get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	object := newObject(gvk)
	if err := b.client.Get(ctx, key, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// find is get for typed objects; it says whether there is one.
func (b *base) find(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := b.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

// writeStatus writes the status of after if it is another than that of before.
func (b *base) writeStatus(ctx context.Context, before, after *unstructured.Unstructured) error {
	if equality.Semantic.DeepEqual(part(before.Object, "status"), part(after.Object, "status")) {
		return nil
	}
	return b.client.Status().Update(ctx, after)
}

// podsByLabel has the object reconciled that the label of a pod names.
func podsByLabel(b *builder.Builder, label string) *builder.Builder {
	return b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, pod client.Object) []reconcile.Request {
			name := pod.GetLabels()[label]
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
		}))
}
