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

package controller

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// A job whose pods the API server refuses, for a ResourceQuota, a LimitRange or a webhook, makes none, and loses its
// quota for that. Its own controller says in events what the refusal was. They are read while the job does not run, and
// once more as it is suspended.

// mostEvents bounds what is read of a namespace.
const mostEvents = 100

// refusal is the last answer with which the API server refused a pod of the job since this time, or empty. The
// controller of the job reports such answers in events. If events cannot be read nothing is known, and the job is
// suspended all the same.
func (o *observer) refusal(ctx context.Context, opened *jobs.Job, since time.Time) string {
	job := opened.Object
	said, err := o.refusals(ctx, job.GetNamespace(), fields.Set{"involvedObject.uid": string(job.GetUID())}, "", since)
	for _, child := range o.kind.Children {
		of := fields.Set{"involvedObject.kind": child.GVK.Kind}
		if err != nil || said != "" {
			break
		}
		said, err = o.refusals(ctx, job.GetNamespace(), of, job.GetName()+"-", since)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read why a job made no pod", "job", klog.KObj(job))
		return ""
	}
	return said
}

// refusals finds the last one since this time among events of these objects, whose names begin so.
func (o *observer) refusals(
	ctx context.Context, namespace string, of fields.Set, prefix string, since time.Time,
) (string, error) {
	of["type"] = corev1.EventTypeWarning
	events := &corev1.EventList{}
	err := o.live.List(ctx, events, client.InNamespace(namespace), client.Limit(mostEvents),
		client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(of)})
	if err != nil {
		return "", err
	}
	var last *corev1.Event
	for i := range events.Items {
		e := &events.Items[i]
		if !strings.HasPrefix(e.Reason, "FailedCreate") || !strings.HasPrefix(e.InvolvedObject.Name, prefix) ||
			saidAt(e).Before(since) {
			continue
		}
		if last == nil || saidAt(e).After(saidAt(last)) {
			last = e
		}
	}
	if last == nil {
		return "", nil
	}
	return event.Short(last.Message), nil
}

// saidAt is when an event was told last. Not every client fills in the same fields.
func saidAt(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if other.After(at) {
			at = other
		}
	}
	return at
}
