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

package submission

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Bounds of the time until another attempt after an error.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
)

var unitKind = v1alpha1.SchemeGroupVersion.WithKind("QueueUnit")

// watcher sends the states of objects until its context ends. It survives a server that does not answer.
type watcher struct {
	api    client.WithWatch
	clock  clock.Clock
	sights chan<- sight
	// down: the last request of a watch failed.
	down atomic.Bool
}

// send tells the goroutine that follows the jobs, which alone writes.
func (w *watcher) send(ctx context.Context, s sight) {
	select {
	case w.sights <- s:
	case <-ctx.Done():
	}
}

// start watches a job and its unit. broken gets an error that does not pass.
func (w *watcher) start(ctx context.Context, f *followed, broken chan<- error) {
	job := types.NamespacedName{Namespace: f.object.GetNamespace(), Name: f.object.GetName()}
	for _, one := range []struct {
		kind schema.GroupVersionKind
		key  types.NamespacedName
		unit bool
	}{{f.kind.GVK, job, false}, {unitKind, f.unit, true}} {
		see := func(object *unstructured.Unstructured) {
			w.send(ctx, sight{of: f, unit: one.unit, object: object})
		}
		go func() {
			if err := w.watch(ctx, one.kind, one.key, see); err != nil {
				select {
				case broken <- fmt.Errorf("%s %s: %w", one.kind.Kind, one.key, err):
				case <-ctx.Done():
				}
			}
		}()
	}
}

// watch one object until the context ends. The error does not pass, such as a missing right.
func (w *watcher) watch(
	ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName, see func(*unstructured.Unstructured),
) error {
	for pause := firstPause; ctx.Err() == nil; {
		err := w.once(ctx, kind, key, see)
		switch {
		case lasts(err):
			return err
		case err == nil: // the server ends each watch after a while
			pause = firstPause
		case ctx.Err() == nil:
			w.failed(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-w.clock.After(pause):
		}
		if err != nil {
			pause = min(2*pause, mostPause)
		}
	}
	return nil
}

// lasts says whether an error is one that another attempt has as well.
func lasts(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// once lists the object and watches it until the stream ends.
func (w *watcher) once(
	ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName, see func(*unstructured.Unstructured),
) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}}
	if err := w.api.List(ctx, list, options...); err != nil {
		return err
	}
	w.answered(ctx)
	var there *unstructured.Unstructured
	for i := range list.Items {
		if list.Items[i].GetName() == key.Name {
			there = &list.Items[i]
		}
	}
	see(there)
	stream, err := w.api.Watch(ctx, list, append(options, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})...)
	if err != nil {
		return err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		object, isObject := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return apierrors.FromObject(event.Object)
		case !isObject || event.Type == watch.Bookmark:
		default:
			see(object)
			if event.Type == watch.Deleted {
				see(nil)
			}
		}
	}
	return nil
}

// failed tells the first error of an outage, and answered its end.
func (w *watcher) failed(ctx context.Context, err error) {
	if !w.down.Swap(true) {
		w.send(ctx, sight{notice: fmt.Sprintf("Cannot follow the jobs for now: %v. Trying again.", err)})
	}
}

func (w *watcher) answered(ctx context.Context) {
	if w.down.Swap(false) {
		w.send(ctx, sight{notice: "Following the jobs again."})
	}
}
