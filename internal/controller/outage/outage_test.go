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

package outage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetried(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, tc := range map[string]struct {
		err  error
		soon bool
	}{
		"no connection":         {err: &url.Error{Op: "Patch", Err: io.EOF}, soon: true},
		"no answer in time":     {err: fmt.Errorf("reading: %w", context.DeadlineExceeded), soon: true},
		"etcd did not answer":   {err: apierrors.NewTimeoutError("etcd", 0), soon: true},
		"too many requests":     {err: apierrors.NewTooManyRequestsError("slow down"), soon: true},
		"starts":                {err: apierrors.NewServiceUnavailable("starts"), soon: true},
		"a webhook is away":     {err: apierrors.NewInternalError(errors.New("failed calling webhook")), soon: true},
		"joined":                {err: errors.Join(errors.New("first"), apierrors.NewTimeoutError("etcd", 0)), soon: true},
		"refused":               {err: apierrors.NewForbidden(jobs, "j", errors.New("quota"))},
		"conflict":              {err: apierrors.NewConflict(jobs, "j", errors.New("changed"))},
		"our own":               {err: errors.New("no decision after 4 looks")},
		"no failure, and again": {},
	} {
		t.Run(name, func(t *testing.T) {
			answer := reconcile.Result{RequeueAfter: time.Minute}
			r := Retried(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return answer, tc.err
			}))
			result, err := r.Reconcile(t.Context(), reconcile.Request{})
			if tc.soon {
				assert.NoError(t, err)
				assert.Equal(t, reconcile.Result{RequeueAfter: retryDelay}, result)
				return
			}
			assert.Equal(t, tc.err, err)
			assert.Equal(t, answer, result)
		})
	}
}
