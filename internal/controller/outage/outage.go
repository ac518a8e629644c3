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

// Package outage retries soon what the API server did not answer.
//
// controller-runtime doubles the wait for an object after each failure, up to 1,000 seconds. Each event of the object
// is one more attempt. An outage of ten seconds would so delay the suspension of a busy job by minutes.
package outage

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryDelay is the time between two attempts while the API server does not answer.
const retryDelay = 2 * time.Second

// Retried is r, with its unanswered requests tried again after retryDelay. Other failures keep their growing waits:
// they are the object's own, and must not take turns from others.
func Retried(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if !unanswered(err) || ctx.Err() != nil {
			return result, err
		}
		klog.FromContext(ctx).Error(err, "The API server did not answer; it is asked again", "after", retryDelay)
		return reconcile.Result{RequeueAfter: retryDelay}, nil
	})
}

// unanswered says whether the failure is one of the API server, of what it calls, or of the way to it.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
	}
	var network net.Error // context.DeadlineExceeded among them
	return errors.As(err, &network)
}
